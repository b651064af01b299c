"""The card of an exported model: README.md with the front matter of the Hugging Face hub.

Its text is the template card.md.jinja. What it says comes from files that the run has kept: corpora
with their counts and licences, evaluation sentences removed, scores with intervals beside those
that the papers print, and the cost of training.
"""

import math
import tempfile
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ems.base.errors import EmsError
from ems.base.files import read_json
from ems.bench.scores import ScoreFile, read_score_file
from ems.config.experiment import MULTIWAY
from ems.config.languages import UNSEEN
from ems.config.plugins import benchmark
from ems.corpora.catalogue import licence_of, versions_of
from ems.export.folder import NGRAM_CODE, Exported, Figures
from ems.export.tokenizer import Loss
from ems.tables.corpora import EVALUATION, PART, TRAIN, Report, read_report
from ems.tables.declarations import tables_of
from ems.tables.engine import Declaration, write_systems
from ems.tables.logs import Cost

NORMAL = 1.96  # standard deviations of a 95 % interval
UNKNOWN = "the user's own"


class ScoreRow(NamedTuple):
    """A mean score, and half of its 95 % interval."""

    label: str
    metric: str
    value: float
    spread: float | None
    version: str


class CorpusRow(NamedTuple):
    """The pairs of a corpus before and after cleaning."""

    name: str
    read: int
    kept: int
    licence: str


@dataclass(frozen=True)
class Kept:
    """The files that a run kept of a system; each may be missing."""

    report: Path | None = None
    scores: list[Path] = field(default_factory=list)
    costs: Path | None = None

    @classmethod
    def beside(cls, model: Path) -> "Kept":
        """Return the files of the run whose folder `models` holds the model folder."""
        run, name = model.resolve().parent.parent, model.resolve().name
        report, costs = run / "reports/decontamination.json", run / f"costs/train/{name}.json"
        return cls(
            report if report.is_file() else None,
            sorted((run / "scores" / name).glob("*.json")),
            costs if costs.is_file() else None,
        )


def card(exported: Exported, figures: Figures, kept: Kept, loss: Loss | None) -> str:
    """Return README.md. Raises `Damaged` for a malformed file of the run."""
    from jinja2 import Environment, StrictUndefined

    form = Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    template = files("ems.export").joinpath("card.md.jinja").read_text(encoding="utf-8")
    about, settings = exported.description, exported.ours.encoder.settings
    languages = about.languages or list(about.segmenters)
    languages = [code for code in languages if code != UNSEEN]
    pieces = exported.ours.vocabulary.get_piece_size()
    scores, tables = _scores(kept.scores)
    report = read_report(kept.report) if kept.report else None
    corpora, removed = _corpora(report, set(languages)) if report else ([], 0)
    names = [each for each in (about.experiment, about.name) if each]
    return form.from_string(template).render(
        front_matter=_front_matter(languages),
        name="-".join(names) or exported.model.resolve().name,
        languages=languages,
        settings=settings,
        static=exported.static,
        ngrams=exported.ngrams,
        pieces=pieces,
        dimensions=exported.dimensions,
        megabytes=4e-6 * (pieces + exported.ngrams) * exported.dimensions,
        identity=about.identity,
        graph=exported.options.onnx or exported.options.int8,
        code=[Path(name).name for name in NGRAM_CODE],
        loss=loss,
        unseen=UNSEEN,
        loss_title=benchmark(loss.benchmark).title if loss else "",
        figures=figures,
        scores=scores,
        tables=tables,
        corpora=corpora,
        removed=removed,
        against=", ".join(report.against) or "none" if report else "",
        costs=read_json(kept.costs, Cost) if kept.costs else None,
    )


def _front_matter(languages: list[str]) -> str:
    from huggingface_hub import ModelCardData

    return ModelCardData(
        language=languages,
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", "sentence-similarity", "feature-extraction", "ems"],
    ).to_yaml()


# --- scores


def _scores(paths: list[Path]) -> tuple[list[ScoreRow], list[tuple[str, str]]]:
    """Return the means with half of their intervals, and (title, Markdown) of the tables."""
    rows, tables = [], []
    for path in paths:
        scores = read_score_file(path)
        title = benchmark(scores.benchmark).title
        for group, value in scores.means():
            label = f"{title}, {group}" if group else title
            spread = None if group else half_interval(scores)
            rows.append(ScoreRow(label, scores.metric, value, spread, scores.version))
        tables += _tables(path, scores.benchmark)
    return rows, tables


def half_interval(scores: ScoreFile) -> float | None:
    """Return half of the 95 % interval of the mean over labels, in percent (the normal
    approximation); None where a row has no hits of its sentences.
    """
    gains = []
    for ways in scores.labelled().values():
        if not all(row.hits for row in ways.values()):
            return None
        bits = [row.bits() for row in ways.values()]
        if len({len(each) for each in bits}) > 1:
            return None
        gains.append(np.mean(bits, axis=0))
    if not gains:
        return None
    if scores.parallel and len({len(each) for each in gains}) == 1:
        gains = [np.mean(gains, axis=0)]  # the same sentences in all languages
    variance = sum(each.var() / len(each) for each in gains) / len(gains) ** 2
    return 100 * NORMAL * math.sqrt(variance)


def _tables(path: Path, name: str) -> list[tuple[str, str]]:
    """Return the title and Markdown of a benchmark's tables, with all rows that papers print."""
    made = []
    for table in tables_of(name).values():
        if not isinstance(table, Declaration):
            continue
        printed = list(table.printed.models()) if table.printed else []
        with tempfile.TemporaryDirectory(prefix="ems-card-") as folder:
            out = Path(folder) / "table.tex"
            try:
                write_systems(table, [path], out, printed)
            except EmsError:  # a table of scores that this system does not have
                continue
            text = out.with_suffix(".md").read_text(encoding="utf-8")
        made.append((benchmark(name).title, text))
    return made


# --- training


def _corpora(report: Report, languages: set[str]) -> tuple[list[CorpusRow], int]:
    """Return the corpora with their counts and licences, and the pairs removed as evaluation."""
    rows, removed = [], 0
    for corpus, role, entries in report.by_corpus():
        own = [entry for entry in entries if set(entry.sides) <= languages]
        if role != TRAIN or not own:
            continue
        read, left = sum(entry.read for entry in own), sum(entry.kept for entry in own)
        removed += sum(entry.removed.get(EVALUATION, 0) for entry in own)
        rows.append(CorpusRow(corpus, read, left, _licence(corpus)))
    return rows, removed


def _licence(corpus: str) -> str:
    name = corpus.partition(" ")[0].partition(PART)[0]
    if name == MULTIWAY:
        return "those of the others, whose sentences these are"
    return licence_of(name) if versions_of(name) else UNKNOWN
