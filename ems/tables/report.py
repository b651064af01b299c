"""Values for report.html.jinja, an experiment's report; parts with missing files are left out."""

import csv
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from ems.base.errors import Damaged, EmsError
from ems.base.files import read_json, read_text, write_text
from ems.base.provenance import digest
from ems.base.records import Json
from ems.base.templates import rendered
from ems.bench.scores import RANGES, Examples
from ems.bench.significance import Sample, surely_best
from ems.config.experiment import Experiment
from ems.config.languages import family_of, language_families, language_names
from ems.config.plugins import benchmark
from ems.tables.corpora import TRAIN, read_report
from ems.tables.engine import own_codes
from ems.tables.logs import P1, VALIDATION, LossEntry, read_losses
from ems.tables.printed import in_given_order, in_table_one_order
from ems.tables.registry import outputs_of
from ems.tables.scores import Scores, read_scores
from ems.tables.table import best_rows, headings_of

EXAMPLES = "examples.json"
MOST_DRAWN = 6  # systems with a colour of their own
MOST_NUMBERED = 15  # languages of a map with numbers in its cells


@dataclass(frozen=True)
class Run:
    """Systems of one experiment in a report, by the label of each: "ems" or "demo: ems"."""

    experiment: Experiment
    labels: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return Path("results", self.experiment.name)

    def files(self, kind: str, name: str) -> list[tuple[Path, str]]:
        """Return (<kind>/<system>/<name>, label) of each system that has this file."""
        paths = [(self.folder / kind / own / name, label) for own, label in self.labels.items()]
        return [(path, label) for path, label in paths if path.is_file()]

    @cached_property
    def families(self) -> dict[str, list[str]]:
        """Name -> labels of the systems that share a row, one per language pair."""
        families = self.experiment.families.items()
        return {name: [self.labels[n] for n in own if n in self.labels] for name, own in families}

    @cached_property
    def trained(self) -> list[str]:
        """The labels of the systems and families that learn; the others are baselines."""
        own = [self.labels[name] for name in self.experiment.learning(self.labels)]
        return [*own, *(name for name, members in self.families.items() if {*members} & {*own})]


@dataclass(frozen=True)
class Column:
    """The scores of one benchmark. `systems`: label -> its scores on the languages trained on."""

    title: str
    systems: dict[str, Scores]

    @property
    def file(self) -> Any:
        return next(iter(self.systems.values())).file

    @cached_property
    def shared(self) -> list[str]:
        """The labels (languages or directions) of the mean that all systems have."""
        labels, _ = self.file.mean_labels()
        systems = self.systems.values()
        return [label for label in labels if all(label in each.values for each in systems)]

    @cached_property
    def samples(self) -> dict[str, Sample]:
        """System -> its mean over the shared labels, or over its own if none is shared."""
        return {n: each.sample(self.shared or each.values) for n, each in self.systems.items()}

    def means(self) -> dict[str, tuple[float, float | None, int]]:
        """Return system -> (mean, half a 95 % interval, number of labels)."""
        counts = {n: len(self.shared or each.values) for n, each in self.systems.items()}
        return {n: (own.value, own.half, counts[n]) for n, own in self.samples.items()}


def runs_of(experiments: Mapping[str, Experiment], chosen: Sequence[tuple[str, str]]) -> list[Run]:
    """Return the systems to report, by experiment: (experiment, system), or all shown for ""."""
    several = len({name for name, _ in chosen}) > 1
    systems: dict[str, list[str]] = {}
    for name, system in chosen:
        own = [system] if system else experiments[name].shown
        systems.setdefault(name, []).extend(own)
    return [
        Run(experiments[name], {each: f"{name}: {each}" if several else each for each in own})
        for name, own in systems.items()
    ]


def write_report(runs: Sequence[Run], out: Path, version: str) -> None:
    """Write the page; `version`: of EMS. Raises `EmsError` if benchmarks have no score file."""
    columns, left_out = _columns(runs)
    if not columns and any(run.experiment.benchmarks for run in runs):
        folders = ", ".join(f"{run.folder}/scores" for run in runs)
        reasons = "".join(f"\n  {reason}" for reason in left_out)
        raise EmsError(f"{folders}: expected score files, found none to show; run it{reasons}")
    trained = [label for run in runs for label in run.trained]
    careful = any(run.experiment.tables.intervals for run in runs)
    headline = [_headline(column, trained, careful) for column in columns]
    labels = dict.fromkeys(name for column in columns for name in column.systems)
    drawn = _drawn(headline, trained) or trained[:MOST_DRAWN]
    page = rendered(
        Path(__file__).with_name("report.html.jinja"),
        title=" and ".join(run.experiment.name for run in runs),
        version=version,
        headline=headline,
        careful=careful,
        systems=sorted(labels, key=lambda label: label not in trained),
        trained=trained,
        left_out=left_out,
        drawn=drawn,
        names=language_names(),
        titles={column.file.benchmark: column.title for column in columns},
        languages=[_by_language(each, drawn) for each in columns if _has_languages(each, drawn)],
        maps=[_map(column, drawn[0]) for column in columns if column.file.label == "source"],
        curves=_curves(runs, drawn),
        runs=[_facts(run, out) for run in runs],
    )
    write_text(out, page)


def _columns(runs: Sequence[Run]) -> tuple[list[Column], list[str]]:
    """Return the benchmarks that have scores, and why others are left out."""
    columns, left_out = [], []
    families = {name: own for run in runs for name, own in run.families.items()}
    for name in dict.fromkeys(name for run in runs for name in run.experiment.benchmarks):
        labels = dict(each for run in runs for each in run.files("scores", f"{name}.json"))
        if not labels:
            continue
        title = benchmark(name).title
        try:
            systems = read_scores([*labels], name, families=families, names=labels, seen=True)
        except Damaged:
            raise
        except EmsError as error:
            left_out.append(f"{title}: {str(error).splitlines()[0]}")
            continue
        columns.append(Column(title, {each.system: each for each in systems if each.values}))
    return columns, left_out


def _headline(column: Column, trained: Collection[str], careful: bool) -> Json:
    """Return a benchmark's row of the main table; `best` (if `careful`, only a significant one) and
    `baseline` are systems.
    """
    file, samples = column.file, column.samples
    lowest, cosine = not file.higher_is_better, file.metric in RANGES
    values = {name: sample.value for name, sample in samples.items()}
    best = [name for name, _ in surely_best({"": samples}, lowest)] if careful else None
    others = {name: value for name, value in values.items() if name not in trained}
    return {
        "column": column,
        "form": "%.2f" if cosine else "%.1f",
        "means": column.means(),
        "best": [] if cosine else best_rows(values, lowest) if best is None else best,
        "baseline": (min if lowest else max)(others, key=others.get, default=""),
    }


def _drawn(headline: Sequence[Json], trained: Collection[str]) -> list[str]:
    """Return the systems to draw: the best of ours first, and one place for the best baseline."""
    precisions: dict[str, list[float]] = {}
    for row in headline:
        for name, (value, *_) in row["means"].items():
            is_precision = row["column"].file.metric == "P@1"
            precisions.setdefault(name, []).extend([value] if is_precision else [])
    order = sorted(precisions, key=lambda name: -fmean(precisions[name] or [0]))
    ours = [name for name in order if name in trained]
    others = [name for name in order if name not in trained]
    ours = ours[: MOST_DRAWN - bool(others)]
    return [*ours, *others[: MOST_DRAWN - len(ours)]]


def _has_languages(column: Column, drawn: Collection[str]) -> bool:
    """True if two or more languages have a percentage, of a system that is drawn."""
    file, systems = column.file, column.systems.keys() & {*drawn}
    percent = file.label != "direction" and file.metric not in RANGES
    return percent and len(column.shared) > 1 and bool(systems)


def _by_language(column: Column, drawn: Sequence[str]) -> Json:
    """Return a benchmark's languages from the weakest of the first system, with all values."""
    systems = {label: column.systems[label] for label in drawn if label in column.systems}
    first = next(iter(systems.values()))
    lowest = not column.file.higher_is_better
    rows = []
    for label in column.shared:
        values = {name: each.values[label] for name, each in systems.items()}
        spread = {name: _ends(each, label) for name, each in systems.items()}
        code = first.file.languages.get(label, label)
        rows.append({"code": code, "values": values, "ends": spread})
    rows.sort(key=lambda row: next(iter(row["values"].values())), reverse=lowest)
    return {"column": column, "system": first.system, "rows": rows}


def _ends(scores: Scores, label: str) -> tuple[float, float]:
    """Return the interval of the mean of a label, or twice the mean if it is unknown."""
    return scores.sample([label]).interval or (scores.values[label],) * 2


def _map(column: Column, system: str) -> Json:
    """Return P@1 of each direction of one system: codes, and a row of values per query."""
    scores = column.systems.get(system) or next(iter(column.systems.values()))
    names = own_codes(scores.file.languages)
    rows = [row for row in scores.file.rows if not row.measure]
    values = {(names[row.source], names[row.target]): row.value for row in rows}
    codes = in_table_one_order({code for pair in values for code in pair})
    numbered = len(codes) <= MOST_NUMBERED
    if not numbered:
        codes = in_given_order(set(codes), list(language_families()))
    return {
        "title": column.title,
        "system": scores.system,
        "codes": codes,
        "families": [] if numbered else [*map(family_of, codes)],
        "least": min(values.values()),
        "grid": [[values.get((query, other)) for other in codes] for query in codes],
    }


def _curves(runs: Sequence[Run], drawn: Sequence[str]) -> list[Json]:
    """Return P@1 and the loss of validation, against the pairs seen: a line per system."""
    files = [each for run in runs for each in run.files("models", "losses.jsonl")]
    rows = {label: read_losses(path) for path, label in files if label in drawn}
    logs = {label: [each for each in own if each.part == VALIDATION] for label, own in rows.items()}
    panels: dict[str, Callable[[LossEntry], float | None]] = {
        "P@1 on the validation pairs (%), higher is better": lambda entry: entry.values.get(P1),
        "Loss on the validation pairs, lower is better": lambda entry: entry.total,
    }
    curves = []
    for title, value_of in panels.items():
        lines = {}
        for label, entries in logs.items():
            points = [(entry.pairs, value_of(entry)) for entry in entries]
            points = [point for point in points if point[1] is not None and isfinite(point[1])]
            if len(points) > 1:
                lines[label] = points
        if lines:
            every = [point for points in lines.values() for point in points]
            pairs, most = (max(numbers) for numbers in zip(*every, strict=True))
            high = 100 if title.startswith("P@1") else most
            curves.append({"title": title, "lines": lines, "pairs": pairs, "high": high})
    return curves


# --- one experiment


def _facts(run: Run, out: Path) -> Json:
    """Return the sections about one experiment: text, costs, examples, outputs, provenance."""
    folder = run.folder
    report, examples = folder / "reports/decontamination.json", folder / "report" / EXAMPLES
    costs = folder / "costs/summary/costs.csv"
    table = list(csv.reader(read_text(costs).splitlines())) if costs.is_file() else []
    return {
        "name": run.experiment.name,
        "folder": os.path.relpath(folder, out.parent),
        "languages": list(run.experiment.languages),
        "corpora": _corpora(report) if report.is_file() else None,
        "costs": table,
        "minutes": sum(float(row[2]) for row in table if row[0].startswith("train ")) / 60,
        "examples": read_json(examples, Examples, EXAMPLES) if examples.is_file() else None,
        "outputs": _outputs(run.experiment, folder),
        "provenance": _provenance(run),
    }


def _corpora(path: Path) -> Json | None:
    """Return the pairs of each corpus by their fate, kept or the reason of removal; None without
    training text. Documents count, in sentences, only if there are no pairs.
    """
    report, headings = read_report(path), headings_of("reason")
    pairs = any(entry.documents is None for entry in report.entries if entry.role == TRAIN)
    rows = []
    for corpus, role, every in report.by_corpus():
        entries = [entry for entry in every if (entry.documents is None) == pairs]
        if role != TRAIN or not entries:
            continue
        parts = {"kept": sum(entry.kept for entry in entries)}
        for reason in headings:
            parts[reason] = sum(entry.removed.get(reason, 0) for entry in entries)
        rows.append({"name": corpus, "read": sum(entry.read for entry in entries), "parts": parts})
    if not rows:
        return None
    rows.sort(key=lambda row: -row["read"])
    parts = {name: sum(row["parts"][name] for row in rows) for name in ("kept", *headings)}
    total = {"name": "all corpora", "read": sum(row["read"] for row in rows), "parts": parts}
    return {
        "rows": [total, *rows],
        "reasons": {name: text.lower() for name, text in headings.items() if parts[name]},
        "unit": "sentence pairs" if pairs else "sentences",
        "against": report.against,
    }


def _outputs(experiment: Experiment, folder: Path) -> list[Json]:
    """Return the tables and figures that exist, with captions and paths relative to the page."""
    listed = []
    for kind in ("table", "figure"):
        for name, output in outputs_of(experiment)[kind].items():
            paths = [path.relative_to(folder) for path in folder.glob(f"{kind}s/{name}.*")]
            words = {"caption": output.shown.caption, "text": output.shown.paragraph}
            listed += [{**words, "paths": sorted(map(str, paths))}] if paths else []
    return listed


def _provenance(run: Run) -> Json:
    """Return checksums: of the settings, of each model, of evaluation data, of the corpora."""
    experiment, folder = run.experiment, run.folder
    settings = Path("configs", f"{experiment.name}.yaml")
    receipts = [read_json(path, Json) for path in sorted(folder.glob("fetched/opus/**/*.json"))]
    files = {name: value for receipt in receipts for name, value in receipt.items()}
    paths = run.files("models", "model.json")
    described = [(label, read_json(path, Json, path.name)) for path, label in paths]
    models = {label: own["identity"] for label, own in described if own.get("identity")}
    return {
        "settings": str(settings),
        "settings_sha256": digest(settings.read_text(encoding="utf-8")),
        "corpus_files": len(files),
        "corpora_sha256": digest(files),
        "models": models,
    }
