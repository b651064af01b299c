"""Clean raw pairs and remove evaluation sentences; count every pair removed, by reason.

One pass per corpus and language pair: part of the corpus, cap, filters (EMS v2 section IV-A: caps;
IV-B: evaluation sentences). A pair is removed if *either* side is an evaluation sentence of *any*
set and language; with `scope: pair`, only evaluation sentences of the pair's own languages count.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, compress, islice
from pathlib import Path
from typing import NamedTuple, TextIO, TypeVar

from ems.base.errors import EmsError, mistake
from ems.base.files import atomic_path, read_json, write_json
from ems.base.progress import Progress, log
from ems.base.records import Count, Json, NonBlank
from ems.base.schema import plain
from ems.base.texts import batched
from ems.config.corpus_entries import Split
from ems.config.experiment import Corpus, Experiment
from ems.config.languages import opus_files
from ems.config.text import CleanSettings
from ems.corpora.content import check_lock
from ems.corpora.moses import CorpusFile, count_rows, probe_files, read_rows
from ems.corpora.own import BAD, Bad
from ems.corpora.probe import check_probe, tell
from ems.corpora.split import lines_of_part, part_of_text, span_of_part
from ems.text.commands import command_filters
from ems.text.duplicates import NEAR, REASON, without_duplicates
from ems.text.evalkeys import EvalKeys
from ems.text.filters import (
    OFF,
    Batches,
    CleanReport,
    Filter,
    RowBatch,
    filtered,
    in_batches,
    row_filters,
)
from ems.text.keys import Keys, folded_keys
from ems.text.lengths import LengthFilter
from ems.text.normalise import tidy_lines
from ems.text.tsv import Counted, Pair

TRAIN = "train"  # the role of a corpus that is trained on
ACROSS = "across"
Item = TypeVar("Item")


class ReportFile(Counted):
    corpus: NonBlank
    version: NonBlank
    role: NonBlank
    pair: NonBlank
    by_benchmark: dict[str, dict[str, Count]]
    threshold: float | None
    files: dict[str, Count]
    archives: dict[str, NonBlank]
    written: Json = field(default_factory=dict)


@dataclass(frozen=True)
class CleanSource:
    """One language pair of a corpus and its files. `label` is the name of the corpus."""

    label: str
    version: str
    pair: str
    archives: tuple[Path, ...]  # one per file of the pair, in order; or the user's own files
    documents: Path | None = None  # for a corpus that is split by document
    held_out: Path | None = None  # keys of the `validation` sentences, for a training corpus
    earlier: tuple[Path, ...] = ()  # clean pairs of the preceding corpora, for `across`
    small: bool = False  # one of many in a job, which logs little

    @property
    def title(self) -> str:
        return f"{self.label} {self.pair}"


@dataclass(frozen=True)
class CleanJob:
    source: CleanSource
    corpus: Corpus
    files: list[CorpusFile]
    split: Split | None  # how the corpus is divided, if only a part of it is used
    seed: str
    settings: CleanSettings
    known: Keys  # of the evaluation sentences to remove
    key_name: str


class Cleaned(NamedTuple):
    """Text in blocks of whole lines, `lines` of each file, and the reports, of sentences and for
    documents also of these, which are complete once all blocks are read.
    """

    blocks: Iterator[str]
    lines: list[int]
    report: CleanReport
    documents: CleanReport | None = None


def clean_corpus(
    experiment: Experiment,
    source: CleanSource,
    keys: EvalKeys,
    out: Path,
    then: Callable[[Iterator[str]], object],
) -> Json:
    """Clean one language pair, or the documents of a language, into the TSV `out`; write the report
    next to it, as .json, and return it. `then` consumes the blocks of text as they are written.
    Line numbers run through the archives in order. The report's `files` counts the lines of each
    (of a mined one: the lines above the threshold), and `archives` gives its path.
    """
    from ems.text.clean_documents import clean_documents  # not above: it imports this module

    role, corpus = experiment.corpus(source.label, source.version)
    job, own = clean_job(experiment, source, keys), source.archives if corpus.paths else ()
    with atomic_path(out) as temporary, unchanged(own) as sha256:
        if own or corpus.path:
            check_text(job)
        cleaned = (clean_documents if corpus.documents else clean_pairs)(job, temporary.parent)
        with open(temporary, "w", encoding="utf-8", newline="\n") as writer:
            then(_written(cleaned.blocks, writer))
        report = cleaned.report
        if own:
            check_form(own[0], report)
        if not report.kept and report.read:
            _check_may_be_empty(job, report)
    if not source.small:
        log.info("%s: %s kept, removed %s", source.title, report.kept, report.removed)
        for reason, examples in report.examples.items():
            shown = "; ".join(f"line {line:,}: {text!r}" for line, text in examples)
            log.info("removed as %s: %s", reason, shown)
    entry = {
        **counts_of(report, "read", "removed", "by_benchmark", "kept", "changed"),
        "corpus": source.label,
        "version": source.version,
        "role": role,
        "pair": source.pair,
        "threshold": corpus.threshold,
        "files": {file.name: count for file, count in zip(job.files, cleaned.lines, strict=True)},
        "archives": {file.name: file.place for file in job.files},
        **({"sha256": sha256} if own else {}),
        **({"repairs": report.repairs.samples} if report.repairs else {}),
    }
    if cleaned.documents:
        entry["documents"] = counts_of(cleaned.documents, "read", "removed", "kept")
    write_json(out.with_suffix(".json"), entry)
    return entry


def check_text(job: CleanJob) -> None:
    """Probe the files of a job. Raises `EmsError` for one of which more than half is wrong."""
    for file in job.files:
        probe = probe_files(list(file.paths), file.name.split("-"))
        check_probe(file.place, probe, job.corpus.accept)
        tell(file.place, probe)


def _written(blocks: Iterable[str], writer: TextIO) -> Iterator[str]:
    for block in blocks:
        writer.write(block)
        yield block


def counts_of(report: CleanReport, *names: str) -> Json:
    return {name: getattr(report, name) for name in names}


def merge_reports(experiment: Experiment, reports: list[Path], out: Path) -> None:
    entries = [read_json(path, ReportFile, "*.json").written for path in reports]
    write_json(out, {**plain(experiment.decontaminate), "corpora": entries})


def eval_keys(experiment: Experiment, source: CleanSource, keys: Path) -> EvalKeys:
    """Read the keys of the evaluation sentences and, for training, of the validation sentences."""
    held, (role, _) = [keys], experiment.corpus(source.label, source.version)
    if role == TRAIN and experiment.decontaminate.validation:
        if source.held_out is None:
            raise EmsError(f"{source.label}: give the sentences of `validation`, --held-out FILE")
        held.append(source.held_out)
    return EvalKeys(held, experiment.decontaminate.key)


def clean_job(experiment: Experiment, source: CleanSource, keys: EvalKeys) -> CleanJob:
    _, corpus = experiment.corpus(source.label, source.version)
    names = corpus.files(source.pair)
    paths = [source.archives] if corpus.paths else [(path,) for path in source.archives]
    return CleanJob(
        source,
        corpus,
        files=[CorpusFile(corpus, *file) for file in zip(paths, names, strict=True)],
        split=experiment.splits[corpus.name] if corpus.part else None,
        seed=f"{experiment.seed}/{source.label}/{source.version}",
        settings=experiment.cleaning(corpus),
        known=keys.of(experiment.held_against(source.pair)),
        key_name=experiment.decontaminate.key,
    )


def job_filters(job: CleanJob) -> list[Filter]:
    return row_filters(job.settings, job.source.pair.split("-"), job.known, job.key_name)


def _check_may_be_empty(job: CleanJob, report: CleanReport) -> None:
    """Fail if cleaning removed every pair; only warn for OPUS files, which may be all benchmark."""
    corpus, unit = job.corpus, "sentences" if job.corpus.documents else "pairs"
    where = ", ".join(str(path) for file in job.files for path in file.paths)
    line = f"{where}: cleaning removed all {report.read:,} {unit}: {dict(report.removed)}"
    if corpus.custom or not opus_files(corpus.name, corpus.version):
        raise EmsError(f"{line}; leave {job.source.pair} out of this corpus, or loosen `clean`")
    log.warning("%s", line)


def clean_pairs(job: CleanJob, scratch: Path) -> Cleaned:
    """Stream the pairs of a corpus through every filter; `scratch` takes temporary files."""
    report, source, own = CleanReport(), job.source, job.corpus.paths
    lines = [count_rows(file) for file in job.files]
    rows, filters = _read(job, lines, report), job_filters(job)
    commands = command_filters(job.settings, source.pair, scratch)
    report.expect(["cap", *(BAD if own else ())])
    progress = Progress(f"decontaminate {source.title}", report.left, "pairs", small=source.small)
    rows = _without_bad(rows, report, progress) if own else rows
    stem = scratch / f".{source.pair}"
    batches = progress.over(in_batches(rows), len)
    batches = through_filters(batches, filters, job.settings, report, stem, source.earlier)
    report.expect(command.reason for command in commands)
    for command in commands:
        batches = command.apply(batches, report)
    return Cleaned(_blocks(batches, report), lines, report)


def through_filters(
    batches: Batches,
    filters: Sequence[Filter],
    settings: CleanSettings,
    report: CleanReport,
    stem: Path = Path(),
    earlier: Sequence[Path] = (),
) -> Iterator[RowBatch]:
    """Apply the filters of single rows, then the filters that compare rows, whose temporary folders
    begin with `stem`; `earlier` are the clean pairs of other corpora, for `duplicates: across`.
    """
    lengths = LengthFilter(settings.pair_filters)
    repeated = [REASON] if settings.duplicates not in OFF else []
    repeated += [NEAR] if NEAR in settings.pair_filters else []
    own = chain.from_iterable(filter.reasons for filter in filters)
    report.expect([*own, *lengths.reasons, *repeated])
    batches = filtered(batches, filters, report)
    batches = lengths.apply(batches, report) if lengths.reasons else batches
    for reason in repeated:
        before = earlier if reason == REASON and settings.duplicates == ACROSS else None
        folder = Path(f"{stem}.{reason}.ems.part")
        batches = without_duplicates(batches, report, folder, before, reason)
    return batches


def _blocks(batches: Batches, report: CleanReport) -> Iterator[str]:
    for batch in batches:
        report.kept += len(batch)
        yield "".join([f"{first}\t{second}\t{line}\n" for first, second, line in batch])


def _read(job: CleanJob, lines: list[int], report: CleanReport) -> Iterator[Pair]:
    """Stream the pairs of all files, which have `lines` lines each, and apply the cap of each."""
    streams, before = [], 0
    for file, count in zip(job.files, lines, strict=True):
        pairs, left = _of_part(job, file, count, before)
        report.read += left
        cap = job.corpus.cap(job.source.pair)
        if cap is not None and cap < left:
            report.removed["cap"] += left - cap
            pairs = sampled(pairs, left, cap, f"{job.seed}/{file.name}")
        streams.append(pairs)
        before += count
    return chain.from_iterable(streams)


def _of_part(
    job: CleanJob, file: CorpusFile, lines: int, before: int
) -> tuple[Iterator[Pair], int]:
    """Return the pairs of a file of `lines` lines in the corpus's part of a split; count them."""
    read = partial(read_rows, file, job.settings.undecodable, before)
    split, part = job.split, job.corpus.part
    if split is None:
        return read(), lines
    if split.first:
        start, end = span_of_part(split, part, lines)
        return islice(read(), start, end), end - start
    if split.sentences:
        wanted = _sentences_of_part(job, read(), lines)
    else:
        wanted = lines_of_part(job.source.documents, split, part, lines, file.path)
    return compress(read(), wanted), sum(wanted)


def _sentences_of_part(job: CleanJob, rows: Iterator[Pair], lines: int) -> bytearray:
    """Return 1 for each row that belongs to the corpus's part of a split by sentence, else 0. The
    folded key of one side decides; a side that could not be decoded counts as empty.
    """
    split, wanted = job.split, bytearray()
    side = job.source.pair.split("-").index(split.sentences)
    progress = Progress(f"divide {job.source.title}", lines, "pairs", small=job.source.small)
    texts = (row[side] if isinstance(row[side], str) else "" for row in rows)
    for batch in progress.over(batched(texts, len), len):
        keys = folded_keys(tidy_lines(batch))
        wanted += bytes(part_of_text(key.encode(), split.parts) == job.corpus.part for key in keys)
    return wanted


def sampled(items: Iterable[Item], total: int, keep: int, seed: str) -> Iterator[Item]:
    """Sample exactly `keep` of `total` streamed items in order (Knuth, TAOCP 2, algorithm S)."""
    draw, left, needed = random.Random(seed), total, keep
    for item in items:
        if draw.random() * left < needed:
            needed -= 1
            yield item
        left -= 1


# --- the user's own files, read where they lie


@contextmanager
def unchanged(paths: Sequence[Path]) -> Iterator[dict[str, str]]:
    """Yield {path: SHA-256}; raise `EmsError` for files that differ from their lock or change."""

    def state() -> list[tuple[int, int]]:
        try:
            return [(stat.st_size, stat.st_mtime_ns) for stat in map(Path.stat, paths)]
        except OSError as error:
            words = {"file": error.filename, "reason": error.strerror}
            raise mistake("file of a corpus is gone", **words) from None

    before = state()
    yield {str(path): check_lock(path) for path in paths}
    if state() != before:
        raise mistake("corpus changed", files=list(map(str, paths)))


def _without_bad(rows: Iterable[Pair], report: CleanReport, progress: Progress) -> Iterator[Pair]:
    for row in rows:
        if isinstance(bad := row[0], Bad):
            report.remove(bad.reason, 1, [(row[-1], bad.text)])
            progress.add()
        else:
            yield row


def check_form(path: Path, report: CleanReport) -> None:
    """Raise `EmsError` if more than half of the rows are not pairs: the file format is wrong."""
    counts = {reason: report.removed[reason] for reason in BAD if report.removed[reason]}
    if 2 * sum(counts.values()) <= report.left:
        return
    line, text = report.examples[max(counts, key=counts.__getitem__)][0]
    why = [f"{count:,} {BAD[reason]}" for reason, count in counts.items()]
    words = {"bad": sum(counts.values()), "left": report.left, "line": line, "text": text}
    raise mistake("rows are no pairs", path=path, why=why, **words)
