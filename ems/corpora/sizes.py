"""What an experiment is going to download, without a network: files, sentence pairs, KB.

Notable choices:
- counts are those of ems/languages/opus.tsv; what it does not list (a corpus of one's own, another
  release) is None, never 0;
- of LASER's mined files only a bound is known: OPUS's release is the same corpus at the lower
  threshold of 1.04, so a mined pair has at most as many;
- the parts of a corpus share their files, so the first of them counts the KB;
- of evaluation sets only those that are drawn of whole corpora are listed: the others are small.
"""

from dataclasses import dataclass

from ems.benchmarks import benchmark
from ems.config import Corpus, Experiment, Split, pair_name
from ems.config.experiment import EvalSet
from ems.corpora.catalogue import catalogue
from ems.corpora.split import span_of_part
from ems.languages.opus import opus_files


@dataclass(frozen=True)
class PairSize:
    """One language pair of one corpus of an experiment.

    `lines` are all sentence pairs of its files, `used` those of the part under the cap; `at_most`
    bounds `used` where that is not known. None: not known.
    """

    role: str
    corpus: Corpus
    pair: str
    lines: int | None
    used: int | None
    at_most: int | None
    kilobytes: int | None
    shared: bool = False  # its files are counted for another part

    @property
    def language(self) -> str:
        """The side that is not English."""
        return next(code for code in self.pair.split("-") if code != "en")

    @property
    def licence(self) -> str:
        """What the catalogue says of the corpus."""
        known = None if self.corpus.own else catalogue().get(self.corpus.name)
        return known.licence if known else "yours"


def pair_sizes(experiment: Experiment) -> list[PairSize]:
    """Every language pair of every corpus, in the order of the experiment."""
    counted: set[tuple[str, str, str]] = set()
    sizes = []
    for role, corpus in experiment.all_corpora():
        split = experiment.splits.get(corpus.name) if corpus.part else None
        for pair in corpus.pairs:
            place = (corpus.name, corpus.version, pair)
            sizes.append(_size(role, corpus, pair, split, place in counted))
            counted.add(place)
    return sizes


def _size(role: str, corpus: Corpus, pair: str, split: Split | None, again: bool) -> PairSize:
    known = opus_files(corpus.name, corpus.version)
    files = [known.get(name) for name in corpus.files(pair)]
    if corpus.own or None in files:
        return PairSize(role, corpus, pair, None, None, None, 0 if again else None, again)
    lines = [file.pairs for file in files]
    used = sum(_used(corpus, pair, split, count) for count in lines)
    if corpus.mined:
        return PairSize(role, corpus, pair, None, None, used, 0 if again else None, again)
    kilobytes = 0 if again else sum(file.kilobytes for file in files)
    return PairSize(role, corpus, pair, sum(lines), used, used, kilobytes, again)


def _used(corpus: Corpus, pair: str, split: Split | None, lines: int) -> int:
    if split and split.first:
        start, end = span_of_part(split, corpus.part, lines)
        lines = end - start
    elif split:
        lines = round(lines * split.parts[corpus.part])
    cap = corpus.cap(pair)
    return lines if cap is None else min(lines, cap)


@dataclass(frozen=True)
class SetSize:
    """An evaluation set that is drawn of a corpus, and so needs the whole files of its languages:
    how many, their sentence pairs and KB. None: not known.
    """

    evalset: str
    corpus: str
    version: str
    files: int
    lines: int | None
    kilobytes: int | None


def set_sizes(experiment: Experiment) -> list[SetSize]:
    """The sets of an experiment that are drawn of a corpus, but for copies that are there."""
    return [
        _set_size(evalset)
        for name, evalset in experiment.evalsets.items()
        if benchmark(name).drawn and not (evalset.path or evalset.embedded)
    ]


def _set_size(evalset: EvalSet) -> SetSize:
    corpus, version = benchmark(evalset.name).corpus, evalset.version
    known = opus_files(corpus, version)
    files = [known.get(pair_name("en", code)) for code in evalset.languages]
    if None in files:
        return SetSize(evalset.name, corpus, version, len(files), None, None)
    lines, kilobytes = sum(file.pairs for file in files), sum(file.kilobytes for file in files)
    return SetSize(evalset.name, corpus, version, len(files), lines, kilobytes)
