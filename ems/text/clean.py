"""Raw pairs -> clean pairs that no evaluation set contains, with every loss counted.

One streaming pass per corpus and language pair: cap, tidy, drop empty sides, decontaminate, filter.
What went in is what came out plus the sum of the reasons (EMS v2 section IV-A: caps; IV-B:
evaluation sentences out).

Notable choices:
- a pair goes if *either* side is an evaluation sentence of *any* set and language; `scope: pair`
  looks only at the evaluation sentences of the pair's own language (what reference counts often
  do);
- a cap draws exactly N of M pairs by selection sampling (Knuth, TAOCP vol. 2, algorithm S): seeded,
  streaming, in the corpus's order, and made before the filters so that it needs only the line
  count;
- output is TSV, one pair a line, so the two sides cannot drift apart.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any

from ems.batches import BATCH
from ems.config import Corpus, Experiment
from ems.corpora.moses import count_pairs, read_pairs
from ems.corpora.split import lines_of_part, span_of_part
from ems.corpora.wikimatrix import read_mined
from ems.errors import EmsError
from ems.files import atomic_path, write_json
from ems.languages.opus import opus_files
from ems.progress import Progress, log
from ems.settings import plain
from ems.shapes import COUNT, TEXT, mapping, named, record
from ems.text.evalkeys import read_eval_keys
from ems.text.filters import Filters, Report, clean_pairs
from ems.text.tsv import Pair

PIVOT = "en"  # on one side of every pair


def capped(pairs: Iterable[Pair], total: int, keep: int, seed: str) -> Iterator[Pair]:
    """Exactly `keep` of `total` pairs, drawn without replacement, in their order."""
    draw, left, needed = random.Random(seed), total, keep
    for pair in pairs:
        if draw.random() * left < needed:
            needed -= 1
            yield pair
        left -= 1


_TEXTS = dict.fromkeys(("corpus", "version", "role", "pair"), TEXT)
ENTRY = named(  # of the report on a pair of a corpus
    "*-*.json",
    record(
        {
            **_TEXTS,
            **dict.fromkeys(("read", "kept"), COUNT),
            "removed": mapping(COUNT),
            "by_benchmark": mapping(mapping(COUNT)),
            "threshold": {"type": ["number", "null"]},
            "files": mapping(COUNT),
            "archives": mapping(TEXT),
        }
    ),
)


@dataclass(frozen=True)
class Source:
    """One pair of one corpus of an experiment, by its label, and the file that holds it."""

    label: str
    version: str
    pair: str
    archives: tuple[Path, ...]  # one for each of the pair's files, in their order
    documents: Path | None = None  # for a corpus that is divided by document


def clean_corpus(experiment: Experiment, source: Source, keys: Path, out: Path) -> dict[str, Any]:
    """Clean one pair of one corpus from its zips to the TSV `out`; return and write its report.

    The report goes to `out` with the suffix .json. Line numbers count through the archives in their
    order; `files` says how many lines each has (of a mined one, how many above the threshold), and
    `archives` where it lies. Raises `EmsError` for a bad archive.
    """
    role, corpus = experiment.corpus(source.label, source.version)
    lines = [_count(corpus, place) for place in _places(corpus, source)]
    filters = Filters(**dict(experiment.clean))
    report = Report(0, Counter(dict.fromkeys(filters.reasons(), 0)), {})
    pairs = _read(experiment, corpus, source, lines, report)
    settings = experiment.decontaminate
    known = read_eval_keys(keys, experiment.held_against(source.pair))
    sides = (source.pair.split("-")[0], source.pair.split("-")[1])
    with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as writer:
        clean = clean_pairs(pairs, sides, known, settings.key, report, filters)
        writer.writelines(f"{first}\t{second}\t{line}\n" for first, second, line in clean)
        if not report.kept and report.read:
            _nothing_left(corpus, source, report)
    log.info("%s %s: %s kept, removed %s", source.label, source.pair, report.kept, report.removed)
    entry = {
        "corpus": source.label,
        "version": source.version,
        "role": role,
        "pair": source.pair,
        "read": report.read,
        "removed": dict(report.removed),
        "changed": dict(report.changed),
        "by_benchmark": {set_: dict(counts) for set_, counts in report.by_benchmark.items()},
        "kept": report.kept,
        "threshold": corpus.threshold,
        "files": dict(zip(corpus.files(source.pair), lines, strict=True)),
        "archives": {
            name: _among_corpora(corpus, path) for path, _, name in _places(corpus, source)
        },
    }
    write_json(out.with_suffix(".json"), entry)
    return entry


def _nothing_left(corpus: Corpus, source: Source, report: Report) -> None:
    """An error, but for OPUS's own small files: one of Tatoeba's may be all benchmark."""
    where = ", ".join(map(str, source.archives))
    line = f"{where}: none of its {report.read:,} pairs is left: {dict(report.removed)}"
    if corpus.own or not opus_files(corpus.name, corpus.version):
        raise EmsError(line)
    log.warning("%s", line)


def _among_corpora(corpus: Corpus, archive: Path) -> str:
    """Where an archive lies among the corpora: "A/v1/moses/de-en.txt.zip"."""
    folder = "mined" if corpus.mined else "moses"
    return f"{corpus.name}/{corpus.version}/{folder}/{archive.name}"


Place = tuple[Path, str, str]  # an archive, its corpus, the name of the pair in it


def _places(corpus: Corpus, source: Source) -> list[Place]:
    names = corpus.files(source.pair)
    if len(names) != len(source.archives):
        raise EmsError(
            f"{source.label} {source.pair}: expected the archives of {', '.join(names)}, found "
            f"{', '.join(map(str, source.archives))}"
        )
    places = zip(source.archives, names, strict=True)
    return [(archive, corpus.name, name) for archive, name in places]


def _read(
    experiment: Experiment, corpus: Corpus, source: Source, lines: list[int], report: Report
) -> Iterator[Pair]:
    """The pairs of the corpus (of its part) under its cap, whose count and removals go to
    `report`.
    """
    streams, before = [], 0
    for place, count in zip(_places(corpus, source), lines, strict=True):
        pairs, left = _of_part(experiment, corpus, source, place, count, before)
        report.read += left
        cap = corpus.cap(source.pair)
        if cap is not None and cap < left:
            report.removed["cap"] += left - cap
            name = f"{experiment.seed}/{source.label}/{source.version}/{place[2]}"
            pairs = capped(pairs, left, cap, name)
        streams.append(pairs)
        before += count
    total = report.read - report.removed["cap"]
    return _counted(chain.from_iterable(streams), _progress(source, total))


def _pairs(
    experiment: Experiment, corpus: Corpus, place: Place
) -> Iterator[tuple[str | None, str | None]]:
    """The pairs of one archive; None for a side that is no text and need not be."""
    if corpus.mined:
        return read_mined(place[0], corpus.threshold)
    return read_pairs(*place, experiment.clean.undecodable)


def _count(corpus: Corpus, place: Place) -> int:
    """How many pairs; of mined ones it may be that none has the score."""
    if corpus.mined:
        return sum(1 for _ in read_mined(place[0], corpus.threshold))
    return count_pairs(*place)


def _of_part(
    experiment: Experiment, corpus: Corpus, source: Source, place: Place, lines: int, before: int
) -> tuple[Iterator[Pair], int]:
    """The pairs of one archive, sides as in the language pair, and how many they are."""
    swapped = place[2].startswith(f"{PIVOT}-") != source.pair.startswith(f"{PIVOT}-")
    pairs = _numbered(_pairs(experiment, corpus, place), swapped, before)
    if not corpus.part:
        return pairs, lines
    split = experiment.splits[corpus.name]
    if split.first:
        start, end = span_of_part(split, corpus.part, lines)
        return islice(pairs, start, end), end - start
    if source.documents is None:
        raise EmsError(f"{source.label}: give the corpus's documents, --documents FILE")
    wanted = lines_of_part(source.documents, split, corpus.part, lines, place[0])
    return compress(pairs, wanted), sum(wanted)


def _numbered(pairs: Iterable[tuple[str, str]], swapped: bool, before: int) -> Iterator[Pair]:
    for line, (first, second) in enumerate(pairs, start=before + 1):
        yield (second, first, line) if swapped else (first, second, line)


def _progress(source: Source, total: int) -> Progress:
    return Progress(f"decontaminate {source.label} {source.pair}", total, "pairs")


def _counted(pairs: Iterable[Pair], progress: Progress) -> Iterator[Pair]:
    """The pairs; many of them are counted at once, since looking at the clock costs more."""
    number = 0
    for number, pair in enumerate(pairs, start=1):
        yield pair
        if not number % BATCH:
            progress.add(BATCH)
    progress.add(number % BATCH)
    progress.close()


def merge_reports(experiment: Experiment, entries: list[dict[str, Any]], out: Path) -> None:
    """Write the decontamination report of an experiment from those of its corpora and pairs."""
    write_json(out, {**plain(experiment.decontaminate), "corpora": entries})
