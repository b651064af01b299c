"""The catalogue of corpora: known names and versions, licences, noise, overlaps, download sizes.

catalogue.tsv adds to OPUS's table (ems/config/languages.py) a rating of noise (NOISE), the corpus
whose text this one `repeats`, and further `versions`; facts.tsv has what OPUS says of each corpus:
kind, licence, page. overlaps.tsv.xz has, for pairs with English, the percentage of a corpus's
different pairs that another one has too, if 10 or more (counted by OPUS; newer corpora are
missing). Your own corpus needs no entry; it gives its `source:` instead. Sizes need no network. A
size that OPUS does not list is None, never 0. LASER's mined files only have an upper bound: OPUS's
release is the same corpus at the lower threshold of 1.04.
"""

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ems.base.errors import mistake
from ems.base.files import read_table
from ems.base.records import Json
from ems.config import languages
from ems.config.corpus_entries import Split
from ems.config.experiment import Corpus, Experiment, other_language
from ems.config.languages import opus_date, opus_files, opus_releases, pair_name, summed
from ems.config.plugins import benchmark
from ems.corpora.split import span_of_part

UNRATED = "unrated"
HERE = Path(__file__).parent
UPDATED = languages.UPDATED.with_name("overlaps.tsv.xz")  # of `ems corpora update` from a clone
_CLASSES = read_table(HERE / "noise.tsv")
NOISE = {row["class"]: row["meaning"] for row in _CLASSES}  # in the order `ems init` prefers
NOISE_SHARE = {row["class"]: float(row["noise"]) for row in _CLASSES}  # estimated, of bad pairs
OF_KIND = {"crawled": "mined", "lexical": "names", "software": "strings"}  # class of a kind


@dataclass(frozen=True)
class Licence:
    """A row of licences.tsv: the address of its text, and its terms, "yes", "no" or '' for unknown:
    whether the source is to be named, a changed text keeps the licence, it may be sold.
    """

    licence: str = ""
    link: str = ""
    attribution: str = ""
    share_alike: str = ""
    commercial: str = ""


@cache
def licence_named(name: str) -> Licence:
    known = (row for row in read_table(HERE / "licences.tsv") if row["licence"] == name)
    return Licence(**next(known, {"licence": name}))


@dataclass(frozen=True)
class CatalogueEntry:
    """What is known of a corpus. `versions` are not in OPUS's table; `licence` is '' if unknown."""

    versions: tuple[str, ...] = ()
    unit: str = ""  # of a line, if it is no sentence
    noise: str = UNRATED
    repeats: str = ""
    licence: str = ""
    note: str = ""
    kind: str = ""
    page: str = ""

    @property
    def commercial(self) -> bool:
        """False if the licence forbids commercial use."""
        return licence_named(self.licence).commercial != "no"


@cache
def catalogue() -> dict[str, CatalogueEntry]:
    known: dict[str, CatalogueEntry] = {}
    for row in read_table(HERE / "facts.tsv"):
        name, noise = row.pop("name"), OF_KIND.get(row["kind"], UNRATED)
        known[name] = CatalogueEntry(noise=noise, **row)
    for row in read_table(HERE / "catalogue.tsv"):
        name, versions = row.pop("name"), tuple(row.pop("versions").split())
        rated = {key: text for key, text in row.items() if text}
        known[name] = replace(known.get(name, CatalogueEntry()), versions=versions, **rated)
    return known


@cache
def overlaps() -> dict[str, dict[tuple[str, str], float]]:
    """Return language pair -> (corpus, another) -> the share of the first that is in the other."""
    shares: dict[str, dict[tuple[str, str], float]] = {}
    path = UPDATED if UPDATED.is_file() else HERE / UPDATED.name
    for line in languages.read_packed(path).splitlines():
        pair, known = line.split("\t")
        rows = (each.split(":") for each in known.split(" "))
        shares[pair] = {(first, second): int(percent) / 100 for first, second, percent in rows}
    return shares


def overlap(corpus: str, other: str, pair: str) -> float:
    """Return the share of a corpus's pairs that another one has, 0 if it is small or unknown."""
    return overlaps().get(pair, {}).get((corpus, other), 0.0)


def catalogue_entry(name: str) -> CatalogueEntry:
    return catalogue().get(name, CatalogueEntry())


@dataclass(frozen=True)
class Defect:
    """A row of known_defects.tsv, about files of an OPUS release. `pair` has names of files, codes,
    `!code` for files without it, or *; a `bad` file is refused, of others `ems check` tells;
    `replaced_by` is a better release, '' for none.
    """

    corpus: str
    version: str
    pair: str
    bad: str
    defect: str
    what: str
    replaced_by: str
    source: str

    def is_in(self, file: str) -> bool:
        own = {"*", file, *file.split("-")}
        words = self.pair.split()
        return any(word in own or (word[0] == "!" and word[1:] not in own) for word in words)

    def __str__(self) -> str:
        better = f"; better: {self.replaced_by}" if self.replaced_by else ""
        return f"{self.defect}: {self.what} ({self.source}){better}"


@cache
def known_defects() -> dict[tuple[str, str], list[Defect]]:
    """Return (corpus, version) -> defects, in the order of the table."""
    releases: dict[tuple[str, str], list[Defect]] = {}
    for row in read_table(HERE / "known_defects.tsv"):
        releases.setdefault((row["corpus"], row["version"]), []).append(Defect(**row))
    return releases


def defects_of(corpus: str, version: str, files: Iterable[str]) -> dict[Defect, list[str]]:
    """Return the known defects of files of a release, each with the files that have it."""
    own = known_defects().get((corpus, version), [])
    found = {defect: [file for file in files if defect.is_in(file)] for defect in own}
    return {defect: names for defect, names in found.items() if names}


def defects_in(corpus: Corpus) -> dict[Defect, list[str]]:
    """Return the known defects of a corpus of OPUS, each with the files that have it."""
    if corpus.custom or corpus.documents:
        return {}
    return defects_of(corpus.name, corpus.version, corpus.all_files)


def page_of(name: str) -> str:
    """Return the address of a corpus's own page, or of OPUS's about it."""
    return catalogue_entry(name).page or f"https://opus.nlpl.eu/legacy/{name}.php"


def licence_of(name: str) -> str:
    return catalogue_entry(name).licence or f"see https://opus.nlpl.eu/legacy/{name}.php"


def versions_of(name: str) -> tuple[str, ...]:
    """Return the versions of a corpus, OPUS releases first; () if it is unknown."""
    return (*opus_releases().get(name, ()), *catalogue_entry(name).versions)


def check_corpora(experiment: Experiment) -> None:
    """Raise `EmsError` with the setting and similar names for an unknown corpus or version."""
    entries = [(f"corpora.{index}", corpus) for index, corpus in enumerate(experiment.corpora)]
    entries += [("validation", corpus) for corpus in experiment.validation]
    newer = "a newer release or your own corpus needs `source:`, an address or a DIRECTORY"
    for key, corpus in entries:
        versions = versions_of(corpus.name)
        if corpus.custom or corpus.documents:
            continue
        for defect, pairs in defects_in(corpus).items():
            if defect.bad and not corpus.accept:
                raise mistake("known defect", key=key, corpus=corpus, pairs=pairs, defect=defect)
        if corpus.version in versions:
            continue
        if not versions:
            named = did_you_mean(corpus.name, {*catalogue(), *opus_releases()})
            words = {"named": named, "date": opus_date(), "newer": newer}
            raise mistake("unknown corpus", key=key, corpus=corpus, **words)
        raise mistake("unknown version", key=key, corpus=corpus, versions=versions, newer=newer)


def did_you_mean(word: str, names: Collection[str]) -> str:
    """Return "; did you mean A or B?" for the most similar names, or ""."""
    folded = {name.lower(): name for name in sorted(names)}
    near = [folded[name] for name in difflib.get_close_matches(word.lower(), folded)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


@dataclass(frozen=True)
class PairSize:
    """Size of one language pair of a corpus; None: unknown. `lines` counts all pairs of its files,
    `used` those left after `part` and the cap, up to `at_most`. `shared`: counted for another part.
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
        """The language other than English, or the language of documents."""
        return other_language(self.pair)

    @property
    def licence(self) -> str:
        if self.corpus.dumped:
            return "CC BY-SA 4.0"
        own = self.corpus.custom and not versions_of(self.corpus.name)
        return "yours" if own else licence_of(self.corpus.name)


def pair_sizes(experiment: Experiment) -> list[PairSize]:
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
    kilobytes = 0 if shared or corpus.paths else None  # the user's own files are read in place
    if corpus.custom or None in files or None in [file.pairs for file in files]:
        return PairSize(role, corpus, pair, kilobytes=kilobytes, shared=shared)
    used, cap = 0, corpus.cap(pair)
    for file in files:
        count = file.pairs
        if split and split.first:
            start, end = span_of_part(split, corpus.part, count)
            count = end - start
        elif split:
            count = round(count * split.parts[corpus.part])
        used += count if cap is None else min(count, cap)
    if corpus.mined:
        return PairSize(role, corpus, pair, at_most=used, kilobytes=kilobytes, shared=shared)
    whole = summed(files)
    kilobytes = 0 if shared else whole.kilobytes
    return PairSize(role, corpus, pair, whole.pairs, used, used, kilobytes, shared)


def set_sizes(experiment: Experiment) -> list[Json]:
    """Return files, sentence pairs and KB (None: unknown) of each set drawn from whole corpora."""
    sizes = []
    for name, evalset in experiment.evalsets.items():
        corpus = benchmark(name).corpus
        if not benchmark(name).drawn or evalset.path or evalset.embedded:
            continue
        known = opus_files(corpus, evalset.version)
        files = [known.get(pair_name("en", code)) for code in evalset.languages]
        place = {"evalset": name, "corpus": corpus, "version": evalset.version}
        whole, place = summed(files), {**place, "files": len(files)}
        sizes.append({**place, "lines": whole.pairs, "kilobytes": whole.kilobytes})
    return sizes
