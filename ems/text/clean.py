"""Raw pairs -> clean pairs that no evaluation set contains, with every loss counted; documents too.

One streaming pass per corpus and language pair: cap, drop what is no pair, tidy, drop empty sides,
decontaminate, filter.
What went in is what came out plus the sum of the reasons (EMS v2 section IV-A: caps; IV-B:
evaluation sentences out). A pair goes if *either* side is an evaluation sentence of *any* set and
language; with `scope: pair` only those of the pair's own languages count.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress, islice
from pathlib import Path

from ems.base.batches import BATCH, batched
from ems.base.errors import EmsError
from ems.base.files import atomic_path, read_json, write_json
from ems.base.progress import Progress, log
from ems.base.schema import Count, Json, Number, Text, plain
from ems.config.corpus_entries import Split
from ems.config.experiment import Corpus, Experiment
from ems.config.languages.opus import opus_files
from ems.corpora.own import BAD, Bad
from ems.corpora.rows import CorpusFile, count_rows, read_rows
from ems.corpora.split import lines_of_part, part_of_text, span_of_part
from ems.text.capped import capped
from ems.text.clean_documents import clean_documents
from ems.text.commands import commands_of, passed
from ems.text.distinct import distinct
from ems.text.evalkeys import read_all_keys
from ems.text.filters import ACROSS, DROP, Filters, Report, clean_pairs
from ems.text.normalise import folded_keys, tidy_lines
from ems.text.own_rows import check_form, unchanged, without_bad
from ems.text.tsv import Counted, Pair

TRAIN = "train"  # the role of a corpus that is trained on
IN_MEMORY = 100_000_000  # pairs whose hashes are held in memory, 1.2 GB; more lie on disk


class CleanReport(Counted, extra="allow"):
    """The report on a pair of a corpus, or on a language of its documents."""

    corpus: Text
    version: Text
    role: Text
    pair: Text
    by_benchmark: dict[str, dict[str, Count]]
    threshold: Number | None
    files: dict[str, Count]
    archives: dict[str, Text]
    sha256: dict[str, Text] | None = None


@dataclass(frozen=True)
class Source:
    """One pair of one corpus of an experiment, by its label, and the files that hold it."""

    label: str
    version: str
    pair: str
    archives: tuple[Path, ...]  # one for each of the pair's files, in their order; or its own files
    documents: Path | None = None  # for a corpus that is divided by document
    held_out: Path | None = None  # keys of the sentences of `validation`, for a training corpus
    earlier: tuple[Path, ...] = ()  # clean pairs of the corpora before it, for `across`


def clean_corpus(experiment: Experiment, source: Source, keys: Path, out: Path) -> Json:
    """Clean one pair of one corpus from its zips to the TSV `out`, or the documents of a language;
    return and write the report.

    The report goes to `out` with the suffix .json. Line numbers count through the archives in their
    order; `files` says how many lines each has (of a mined one, how many above the threshold), and
    `archives` where it lies. Raises `EmsError` for a bad archive.
    """
    role, corpus = experiment.corpus(source.label, source.version)
    archives, held_against = _archives(corpus, source), [keys, *_held_out(experiment, source)]
    more: Json = {}
    own = source.archives if corpus.paths else ()
    with atomic_path(out) as temporary, unchanged(own) as sha256:
        if corpus.documents:
            cleaned = clean_documents(
                experiment, corpus, source.pair, list(source.archives), held_against, temporary
            )
            report, lines, more = cleaned.report, cleaned.lines, {"documents": cleaned.documents}
        else:
            lines = [count_rows(archive) for archive in archives]
            report = _clean_pairs(experiment, source, archives, lines, held_against, temporary)
        if corpus.paths:
            more = {"sha256": sha256}
            check_form(source.archives[0], report)
        if not report.kept and report.read:
            _check_may_be_empty(corpus, source, report)
    log.info("%s %s: %s kept, removed %s", source.label, source.pair, report.kept, report.removed)
    _log_examples(report)
    entry = {
        **{key: value for key, value in vars(report).items() if key != "examples"},
        "corpus": source.label,
        "version": source.version,
        "role": role,
        "pair": source.pair,
        "threshold": corpus.threshold,
        "files": {archive.name: count for archive, count in zip(archives, lines, strict=True)},
        "archives": {archive.name: archive.place for archive in archives},
        **more,
    }
    write_json(out.with_suffix(".json"), entry)
    return entry


def _held_out(experiment: Experiment, source: Source) -> list[Path]:
    """Return the keys of the sentences of `validation`, if the corpus must not hold them."""
    role, _ = experiment.corpus(source.label, source.version)
    if role != TRAIN or not experiment.decontaminate.validation:
        return []
    if source.held_out is None:
        raise EmsError(f"{source.label}: give the sentences of `validation`, --held-out FILE")
    return [source.held_out]


def _earlier(experiment: Experiment, source: Source) -> list[Path]:
    """Return the clean pairs of the corpora before it. Raises `EmsError` for another number."""
    expected = [
        f"{corpus.label}/{corpus.version}"
        for corpus in experiment.before(source.label, source.version, source.pair)
    ]
    if len(source.earlier) != len(expected):
        raise EmsError(
            f"{source.label} {source.pair}: `clean.duplicates: across` needs the clean pairs of "
            f"{', '.join(expected) or 'no other corpus'}, found {len(source.earlier)} files; give "
            "them in this order, --earlier FILE"
        )
    return list(source.earlier)


def _clean_pairs(
    experiment: Experiment,
    source: Source,
    archives: list[CorpusFile],
    lines: list[int],
    keys: list[Path],
    out: Path,
) -> Report:
    """Write the clean pairs of a corpus to `out`; return what happened to them."""
    _, corpus = experiment.corpus(source.label, source.version)
    filters = Filters.model_construct(**dict(experiment.cleaning(corpus)))
    bad = BAD if archives[0].corpus.paths else ()
    report = Report(0, Counter(dict.fromkeys([*bad, *filters.reasons()], 0)), {})
    pairs = _read(experiment, source, archives, lines, report)
    on_disk, many = filters.duplicates == ACROSS, report.read - report.removed["cap"] > IN_MEMORY
    if filters.duplicates == DROP and many:
        on_disk, filters = True, filters.model_copy(update={"duplicates": "keep"})
    known = read_all_keys(keys, experiment.held_against(source.pair))
    sides = (source.pair.split("-")[0], source.pair.split("-")[1])
    with open(out, "w", encoding="utf-8") as writer:
        clean = clean_pairs(pairs, sides, known, experiment.decontaminate.key, report, filters)
        if on_disk:
            scratch = out.parent / f".{source.pair}.distinct.part"
            clean = distinct(clean, _earlier(experiment, source), scratch, report)
        for command in commands_of(filters, source.pair):
            clean = passed(clean, command, out.parent, report)
        writer.writelines(f"{first}\t{second}\t{line}\n" for first, second, line in clean)
    return report


def _log_examples(report: Report) -> None:
    for reason, examples in report.examples.items():
        shown = "; ".join(f"line {line:,}: {text!r}" for line, text in examples)
        log.info("removed as %s: %s", reason, shown)


def merge_reports(experiment: Experiment, reports: list[Path], out: Path) -> None:
    """Write the decontamination report of an experiment from those of its corpora and pairs."""
    read = [read_json(path, CleanReport, "*.json") for path in reports]
    entries = [report.model_dump(exclude_unset=True) for report in read]
    write_json(out, {**plain(experiment.decontaminate), "corpora": entries})


def _archives(corpus: Corpus, source: Source) -> list[CorpusFile]:
    names = corpus.files(source.pair)
    if corpus.paths:
        return [CorpusFile(corpus, source.archives, names[0])]
    if len(names) != len(source.archives):
        raise EmsError(
            f"{source.label} {source.pair}: expected the archives of {', '.join(names)}, found "
            f"{', '.join(map(str, source.archives))}"
        )
    places = zip(source.archives, names, strict=True)
    return [CorpusFile(corpus, (path,), name) for path, name in places]


def _check_may_be_empty(corpus: Corpus, source: Source, report: Report) -> None:
    """Fail if cleaning removed every pair; only warn for the files that OPUS lists.

    A small one, like some of Tatoeba's, may consist of evaluation sentences.
    """
    where = ", ".join(map(str, source.archives))
    unit = "sentences" if corpus.documents else "pairs"
    line = f"{where}: none of its {report.read:,} {unit} is left: {dict(report.removed)}"
    if corpus.own or not opus_files(corpus.name, corpus.version):
        raise EmsError(f"{line}; leave {source.pair} out of this corpus, or loosen `clean`")
    log.warning("%s", line)


def _read(
    experiment: Experiment,
    source: Source,
    archives: list[CorpusFile],
    lines: list[int],
    report: Report,
) -> Iterator[Pair]:
    """Stream the pairs of all archives under their caps; count in `report` what is read and cut."""
    streams, before = [], 0
    for archive, count in zip(archives, lines, strict=True):
        read = partial(read_rows, archive, experiment.clean.undecodable, before)
        pairs, left = _of_part(experiment, source, archive, read, count)
        report.read += left
        cap = archive.corpus.cap(source.pair)
        if cap is not None and cap < left:
            report.removed["cap"] += left - cap
            seed = f"{experiment.seed}/{source.label}/{source.version}/{archive.name}"
            pairs = capped(pairs, left, cap, seed)
        streams.append(pairs)
        before += count
    total = report.read - report.removed["cap"]
    progress = Progress(f"decontaminate {source.label} {source.pair}", total, "pairs")
    rows = _counted(chain.from_iterable(streams), progress)
    return without_bad(rows, report) if archives[0].corpus.paths else rows


def _of_part(
    experiment: Experiment,
    source: Source,
    archive: CorpusFile,
    read: Callable[[], Iterator[Pair]],
    lines: int,
) -> tuple[Iterator[Pair], int]:
    """Return the pairs that belong to the corpus's part of a split, and their number.

    `read` streams the pairs of the archive, which has so many `lines`.
    """
    corpus, pairs = archive.corpus, read()
    if not corpus.part:
        return pairs, lines
    split = experiment.splits[corpus.name]
    if split.first:
        start, end = span_of_part(split, corpus.part, lines)
        return islice(pairs, start, end), end - start
    if split.sentences:
        own = partial(_of_sentences, source.pair.split("-").index(split.sentences), split, corpus)
        progress = Progress(f"divide {source.label} {source.pair}", lines, "pairs")
        return own(pairs), sum(1 for _ in own(_counted(read(), progress)))
    if source.documents is None:
        raise EmsError(f"{source.label}: give the corpus's documents, --documents FILE")
    wanted = lines_of_part(source.documents, split, corpus.part, lines, archive.path)
    return compress(pairs, wanted), sum(wanted)


def _of_sentences(side: int, split: Split, corpus: Corpus, pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Yield the pairs whose sentence on a side belongs to the corpus's part by its folded key.

    A side that could not be read counts as an empty one.
    """
    for batch in batched(pairs, lambda row: len(_text(row[0])) + len(_text(row[1]))):
        keys = folded_keys(tidy_lines([_text(row[side]) for row in batch]))
        own = [part_of_text(key.encode(), split.parts) == corpus.part for key in keys]
        yield from compress(batch, own)


def _text(side: str | Bad | None) -> str:
    return side if isinstance(side, str) else ""


def _counted(pairs: Iterable[Pair], progress: Progress) -> Iterator[Pair]:
    """Count the pairs, many at once: looking at the clock costs more than a pair."""
    number = 0
    for number, pair in enumerate(pairs, start=1):
        yield pair
        if not number % BATCH:
            progress.add(BATCH)
    progress.add(number % BATCH)
    progress.close()
