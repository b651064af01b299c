"""What an experiment is going to download, without a network: files, sentence pairs, KB.

Counts are those of ems/config/languages/opus.py; what OPUS does not count (a corpus of one's own, a
newer release) is None, never 0. LASER's mined files only have an upper bound: OPUS's release is the
same corpus at the lower threshold of 1.04. Of evaluation sets only those that are drawn from whole
corpora are listed: the others are small.
"""

from dataclasses import dataclass

from ems.base.schema import Json
from ems.config.corpus_entries import Split
from ems.config.experiment import Corpus, Experiment, other_language
from ems.config.languages.opus import opus_files
from ems.config.opus import pair_name
from ems.config.plugins import benchmark
from ems.corpora.catalogue import licence_of
from ems.corpora.split import span_of_part


@dataclass(frozen=True)
class PairSize:
    """One language pair of one corpus of an experiment; None: not known.

    `lines` are all sentence pairs of its files, `used` those of the part under the cap; `at_most`
    bounds `used` if that is not known. `shared`: the parts of a corpus share their files, which
    count for another one.
    """

    role: str
    corpus: Corpus
    pair: str
    lines: int | None = None
    used: int | None = None
    at_most: int | None = None
    kilobytes: int | None = None
    shared: bool = False

    @property
    def language(self) -> str:
        """The side that is not English, or the language of documents."""
        return other_language(self.pair)

    @property
    def licence(self) -> str:
        """The licence of the corpus by the catalogue."""
        if self.corpus.dumped:
            return "CC BY-SA 4.0"
        return "yours" if self.corpus.own else licence_of(self.corpus.name)


def pair_sizes(experiment: Experiment) -> list[PairSize]:
    """Return every language pair of every corpus, in the order of the experiment."""
    counted: set[tuple[str, str, str]] = set()
    sizes = []
    for role, corpus in experiment.all_corpora():
        split = experiment.splits.get(corpus.name) if corpus.part else None
        for pair in corpus.pairs:
            place = (corpus.name, corpus.version, pair)
            sizes.append(_size(role, corpus, pair, split, place in counted))
            counted.add(place)
    return sizes


def _size(role: str, corpus: Corpus, pair: str, split: Split | None, shared: bool) -> PairSize:
    known = {} if corpus.documents else opus_files(corpus.name, corpus.version)
    files = [known.get(name) for name in corpus.files(pair)]
    kilobytes = 0 if shared or corpus.paths else None  # the user's own are read in place
    if corpus.own or None in files or None in [file.pairs for file in files]:
        return PairSize(role, corpus, pair, kilobytes=kilobytes, shared=shared)
    used = sum(_used(corpus, pair, split, file.pairs) for file in files)
    if corpus.mined:
        return PairSize(role, corpus, pair, at_most=used, kilobytes=kilobytes, shared=shared)
    lines = sum(file.pairs for file in files)
    kilobytes = 0 if shared else sum(file.kilobytes for file in files)
    return PairSize(role, corpus, pair, lines, used, used, kilobytes, shared)


def _used(corpus: Corpus, pair: str, split: Split | None, lines: int) -> int:
    if split and split.first:
        start, end = span_of_part(split, corpus.part, lines)
        lines = end - start
    elif split:
        lines = round(lines * split.parts[corpus.part])
    cap = corpus.cap(pair)
    return lines if cap is None else min(lines, cap)


def set_sizes(experiment: Experiment) -> list[Json]:
    """Return the evaluation sets that need the whole files of a corpus and are not used in place,
    with the number of these files, their sentence pairs and KB (None: not known).
    """
    sizes = []
    for name, evalset in experiment.evalsets.items():
        corpus = benchmark(name).corpus
        if not benchmark(name).drawn or evalset.path or evalset.embedded:
            continue
        known = opus_files(corpus, evalset.version)
        files = [known.get(pair_name("en", code)) for code in evalset.languages]
        place = {"evalset": name, "corpus": corpus, "version": evalset.version}
        counts = [file.pairs if file else None for file in files]
        lines = None if None in counts else sum(counts)
        kilobytes = None if None in files else sum(file.kilobytes for file in files)
        sizes.append({**place, "files": len(files), "lines": lines, "kilobytes": kilobytes})
    return sizes
