"""The model card of an export: README.md with the front matter of the Hugging Face hub.

The template is card.md.jinja. The facts come from files of the run: corpora with counts and
licences, removed evaluation sentences, scores with intervals, and the cost of training.
"""

import math
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np

from ems.base.errors import EmsError
from ems.base.files import read_json
from ems.base.records import Json
from ems.bench.scores import ScoreFile, read_score_file
from ems.config.experiment import MULTIWAY
from ems.config.languages import UNSEEN
from ems.config.plugins import benchmark
from ems.corpora.catalogue import licence_of, versions_of
from ems.export.folder import NGRAM_CODE, Exported
from ems.export.tokenizer import Loss
from ems.export.verify import Figures
from ems.tables.corpora import EVALUATION, PART, TRAIN, read_report
from ems.tables.declarations import tables_of
from ems.tables.engine import Declaration, write_systems
from ems.tables.logs import JobCost

NORMAL = 1.96  # standard deviations of a 95 % interval


def card(exported: Exported, loss: Loss | None, figures: Figures) -> str:
    """Render README.md from the files of the run, each of which may be missing.

    The run is the folder two levels above the model folder. Raises `Damaged` for a malformed file.
    """
    from huggingface_hub import ModelCardData
    from jinja2 import Environment, StrictUndefined

    model = exported.model.resolve()
    run, about = model.parent.parent, exported.description
    costs = run / f"costs/train/{model.name}.json"
    languages = about.languages or list(about.segmenters)
    languages = [code for code in languages if code != UNSEEN]
    pieces = exported.ours.vocabulary.get_piece_size()
    paths = sorted((run / "scores" / model.name).glob("*.json"))
    scores = {path: read_score_file(path) for path in paths}
    front_matter = ModelCardData(
        language=languages,
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", "sentence-similarity", "feature-extraction", "ems"],
    )
    template = files("ems.export").joinpath("card.md.jinja").read_text(encoding="utf-8")
    form = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    return form.from_string(template).render(
        front_matter=front_matter.to_yaml(),
        name="-".join(filter(None, (about.experiment, about.name))) or model.name,
        languages=languages,
        exported=exported,
        settings=exported.settings,
        pieces=pieces,
        megabytes=4e-6 * (pieces + exported.ngrams) * exported.dimensions,
        plain=exported.plain,
        code=[Path(name).name for name in NGRAM_CODE],
        loss=loss,
        unseen=UNSEEN,
        loss_title=benchmark(loss.benchmark).title if loss else "",
        figures=figures,
        scores=[row for each in scores.values() for row in _scores(each)],
        tables=[table for path, each in scores.items() for table in _tables(path, each)],
        **_corpora(run / "reports/decontamination.json", set(languages)),
        costs=read_json(costs, JobCost) if costs.is_file() else None,
    )


# --- scores


def _scores(scores: ScoreFile) -> list[Json]:
    title, version = benchmark(scores.benchmark).title, scores.version
    return [
        {
            "label": f"{title}, {group}" if group else title,
            "metric": scores.metric,
            "value": value,
            "spread": None if group else half_interval(scores),
            "version": version,
        }
        for group, value in scores.means()
    ]


def half_interval(scores: ScoreFile) -> float | None:
    """Return half of the 95 % interval of the mean over labels, in percent.

    Uses the normal approximation. None if a row lacks the hits of its sentences.
    """
    gains = []
    for ways in scores.labelled().values():
        if not all(row.hits for row in ways.values()):
            return None
        bits = [row.bits() for row in ways.values()]
        if len({len(row) for row in bits}) > 1:
            return None
        gains.append(np.mean(bits, axis=0))
    if not gains:
        return None
    if scores.parallel and len({len(gain) for gain in gains}) == 1:
        gains = [np.mean(gains, axis=0)]  # the same sentences in all languages
    variance = sum(gain.var() / len(gain) for gain in gains) / len(gains) ** 2
    return 100 * NORMAL * math.sqrt(variance)


def _tables(path: Path, scores: ScoreFile) -> list[tuple[str, str]]:
    """Return titles and Markdown of a benchmark's tables, with the rows printed in papers."""
    tables = []
    for table in tables_of(scores.benchmark).values():
        if not isinstance(table, Declaration):
            continue
        printed = list(table.printed.models()) if table.printed else []
        with tempfile.TemporaryDirectory(prefix="ems-card-") as folder:
            out = Path(folder) / "table.tex"
            try:
                write_systems(table, [path], out, printed)
            except EmsError:  # this system lacks the scores of the table
                continue
            text = out.with_suffix(".md").read_text(encoding="utf-8")
        tables.append((benchmark(scores.benchmark).title, text))
    return tables


# --- training


def _corpora(path: Path, languages: set[str]) -> Json:
    """Return the values of the card about training text, from a decontamination report.

    `corpora`: names, counts and licences; `removed`: number of pairs with evaluation sentences;
    `against`: names of the evaluation sets.
    """
    rows, removed = [], 0
    report = read_report(path) if path.is_file() else None
    for corpus, role, entries in report.by_corpus() if report else ():
        own = [entry for entry in entries if set(entry.sides) <= languages]
        if role != TRAIN or not own:
            continue
        name = corpus.partition(" ")[0].partition(PART)[0]
        if name == MULTIWAY:
            licence = "as the other corpora, whose sentences it joins"
        else:
            licence = licence_of(name) if versions_of(name) else "the user's own"
        counts = {key: sum(getattr(entry, key) for entry in own) for key in ("read", "kept")}
        removed += sum(entry.removed.get(EVALUATION, 0) for entry in own)
        rows.append({"name": corpus, "licence": licence, **counts})
    against = ", ".join(report.against) or "none" if report else ""
    return {"corpora": rows, "removed": removed, "against": against}
