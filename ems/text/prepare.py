"""Prepare the language pairs of a corpus: clean, decontaminate and segment each in one pass.

The text is read once and each file is written once. A pair's stamp names all that its files depend
on, so that a job makes only the pairs that are missing or have changed.
"""

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from ems.base.files import atomic_path, read_json, write_json
from ems.base.provenance import source_hash
from ems.base.records import Json
from ems.base.stamps import Stamp, make_each
from ems.config.experiment import Experiment, name_of_part
from ems.config.stages import stage_settings
from ems.corpora.locations import archives_of
from ems.text.bulk import Segmenting, segmenter_hashes
from ems.text.clean import CleanSource, ReportFile, clean_corpus, eval_keys
from ems.text.evalkeys import EvalKeys
from ems.text.segmenters.base import warn_of_marks
from ems.text.tsv import CLEAN, SEGMENTED


@dataclass(frozen=True)
class Part:
    """Neighbouring language pairs of a corpus, and the files and folders of their job."""

    experiment: Experiment
    label: str
    version: str
    pairs: list[str]
    data: Path
    keys: Path
    held_out: Path | None
    text: Path
    state: Path
    workers: int
    lines: int  # of a piece to segment

    @cached_property
    def settings(self) -> Json:
        names = {"label": self.label, "version": self.version, "part": name_of_part(self.pairs)}
        return stage_settings(self.experiment, "prepare", **names)

    def file(self, stage: str, pair: str) -> Path:
        return self.text / stage / self.label / self.version / f"{pair}.tsv"

    def outputs(self, pair: str) -> dict[str, Path]:
        clean, segmented = self.file(CLEAN, pair), self.file(SEGMENTED, pair)
        return {"clean": clean, "report": clean.with_suffix(".json"), "segmented": segmented}

    def source(self, pair: str) -> CleanSource:
        _, corpus = self.experiment.corpus(self.label, self.version)
        documents = self.experiment.document_names(corpus)
        before = self.experiment.before(self.label, self.version, pair)
        others = [replace(self, label=each.label, version=each.version) for each in before]
        folder = self.data / "opus" / corpus.name / corpus.version
        return CleanSource(
            self.label,
            self.version,
            pair,
            archives=tuple(archives_of(corpus, pair, self.data)),
            documents=folder / documents if documents else None,
            held_out=self.held_out,
            earlier=tuple(each.file(CLEAN, pair) for each in others),
            small=len(self.pairs) > 1,
        )

    def stamp(self, source: CleanSource) -> Stamp:
        own = self.settings["pairs"][source.pair]
        code = [source_hash("ems.text.clean"), *segmenter_hashes(own["segmenters"])]
        shared = filter(None, (self.keys, source.held_out, source.documents))
        outputs = tuple(self.outputs(source.pair).values())
        return Stamp(
            outputs[-1].parent / ".stamps" / f"{source.pair}.json",
            [self.settings["common"], own, code],
            (*source.archives, *source.earlier, *shared),
            outputs,
        )

    def make(self, known: EvalKeys, source: CleanSource, stamp: Stamp) -> dict[str, str]:
        """Clean and segment one pair; return the SHA-256 of its files."""
        codes, files = tuple(source.pair.split("-")), self.outputs(source.pair)
        names = tuple(self.settings["pairs"][source.pair]["segmenters"])
        state = self.state / source.pair
        segmenting = Segmenting(codes, names, state, self.workers, self.lines)
        with stamp.making() as sums, atomic_path(files["segmented"]) as temporary:
            write = partial(segmenting.write, temporary)
            clean_corpus(self.experiment, source, known, files["clean"], write)
        segmenting.finish()
        return sums


def prepare_pairs(part: Part, receipt: Path) -> str:
    """Clean and segment missing pairs, write {pair: SHA-256 of each file}; return a summary."""
    started = time.monotonic()
    sources = {pair: part.source(pair) for pair in part.pairs}
    stamps = {pair: part.stamp(source) for pair, source in sources.items()}
    sums = {pair: stamp.sums() for pair, stamp in stamps.items()}
    if waiting := [pair for pair in part.pairs if sums[pair] is None]:
        known = eval_keys(part.experiment, sources[waiting[0]], part.keys)
        codes = {code for pair in waiting for code in pair.split("-")}
        chosen = {code: part.experiment.segmenters[code] for code in sorted(codes)}
        warn_of_marks(chosen, part.experiment.languages)

        def make(pair: str) -> None:
            sums[pair] = part.make(known, sources[pair], stamps[pair])

        make_each(waiting, make, str)
    with suppress(OSError):  # there is none, or it has pieces of pairs of another part
        part.state.rmdir()
    made = {}
    for pair in part.pairs:
        made[pair] = {kind: sums[pair][str(path)] for kind, path in part.outputs(pair).items()}
    write_json(receipt, made)
    return _summary(part, waiting, time.monotonic() - started)


def _summary(part: Part, made: list[str], seconds: float) -> str:
    reports = [read_json(part.outputs(pair)["report"], ReportFile) for pair in part.pairs]
    removed = sum((Counter(report.removed) for report in reports), Counter())
    read, kept = (sum(getattr(each, name) for each in reports) for name in ("read", "kept"))
    size = sum(part.outputs(pair)["clean"].stat().st_size for pair in made)
    done = len(part.pairs) - len(made)
    before = f" ({done} {'was' if done == 1 else 'were'} done before)" if done else ""
    parts = [f"{len(part.pairs)} pairs{before}", f"{read:,} rows read", f"{kept:,} kept"]
    parts += [f"{size / 1e6 / seconds:.1f} MB/s of clean text"] if made else []
    gone = ", ".join(f"{count:,} {reason}" for reason, count in (+removed).items())
    where = f"{part.label}/{part.version} {name_of_part(part.pairs)}"
    return f"{where}: {', '.join(parts)}; removed {gone or 'nothing'}"
