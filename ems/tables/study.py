"""Tables of several benchmarks side by side: studies, and EMS v2 Table XIV.

The rows of a study are chosen one by one (`tables.studies` of the experiment). A row may show each
benchmark of another system, as the Lightweight paper calls two trainings "ours" (docs/fidelity.md).
A printed value beside scores of other data, like those of a benchmark that stands in for the
paper's, carries a dagger. What training cost differs from run to run, so its columns are only in
the table of costs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ems.base.errors import EmsError
from ems.bench.scores import ENGLISH, Score, ScoreFile
from ems.config.experiment import Experiment
from ems.config.languages import UNSEEN
from ems.config.plugins import benchmark as record_of
from ems.config.plugins import joining, module
from ems.config.tables import MEAN, StudyRow, StudySettings, study_rows
from ems.tables.corpora import read_report
from ems.tables.declarations import MAJORITY, tables_of
from ems.tables.engine import (
    BEST,
    Column,
    Declaration,
    Printed,
    headings,
    labels_of,
    part_of,
    write_sections,
)
from ems.tables.logs import last_time
from ems.tables.models import FACT_HEADINGS, FACT_NOTES, cost_of, fact_of
from ems.tables.printed import load_study, load_table, of_ems, paper_of_study
from ems.tables.scores import Families, Scores, read_scores
from ems.tables.table import Block

NOTHING = ScoreFile("", [], {})  # of a row without scores
SECONDS = "Sec./1k Steps"
PRINTED_AS = "EMS"  # where `tables.printed` names it, the printed rows are shown
PAPER = Printed(
    of_ems("XIV"),
    partial(load_table, "ems-v2-table14-ablation", "column"),
    "version v1 of all benchmarks",
    version="v1",
    every=True,
    whole=True,
    dagger="as printed, over all languages or directions of the paper",
)


@dataclass(frozen=True)
class Study:
    """A study with the scores that were read for it.

    `shown`: benchmark of the settings -> the one whose scores are shown, '' for none; `scores`: the
    same -> system -> its scores; `rows` are those of the settings.
    """

    settings: StudySettings
    rows: list[StudyRow]
    shown: dict[str, str]
    scores: dict[str, dict[str, Scores]]

    def row(self, row: StudyRow) -> Scores:
        """Return the scores of a row under its label.

        Raises `EmsError` when two of its systems have a score of the same direction.
        """
        own = [
            systems[name]
            for benchmark, systems in self.scores.items()
            for name in row.systems.get(benchmark, [])
        ]
        labels = [label for scores in own for label in scores.values]
        for label in labels:
            if labels.count(label) > 1:
                names = ", ".join(scores.system for scores in own if label in scores.values)
                raise EmsError(f"row {row.label}: {names} all have scores of {label}; name one")
        return replace(in_one_row(own or [Scores(NOTHING, "")]), system=row.label)


def write_study(
    experiment: Experiment,
    name: str,
    sources: Sequence[Path],
    out: Path,
    times: Mapping[str, Path] | None = None,
) -> None:
    """Write a study as .tex, .md and .csv beside `out`.

    `sources` are score files, model.json of systems, and the decontamination report, as far as the
    study needs them; `times`: system -> its costs/train/*.times.jsonl, for the columns of costs.
    Raises `EmsError` for malformed files and scores of different data.
    """
    study = _read(experiment, name, sources)
    settings = study.settings
    scores = [study.row(row) for row in study.rows]
    costs = settings.costs if times is not None else []
    columns = [
        *_facts(experiment, study, sources),
        *(_cost(experiment, study, cost, times or {}) for cost in costs),
        *_columns(study, scores),
    ]
    notes = [*_about(study), *_about_rows(study)]
    notes += [FACT_NOTES[name] for name in [*settings.facts, *costs] if name in FACT_NOTES]
    notes += steps_note(_steps(experiment, study))
    printed = _printed(study, settings.printed) if settings.printed else None
    table = replace(table_of(columns, notes, printed, settings.heading), shared=MAJORITY)
    write_sections(table, {"": scores}, out, [settings.printed] if printed else [])


def plot_study(experiment: Experiment, name: str, sources: Sequence[Path], out: Path) -> None:
    """Draw a study, a line per column over its rows, as .svg and .png beside `out`."""
    from ems.tables.figures import plot_lines  # a table need not wait for matplotlib

    study = _read(experiment, name, sources)
    scores = [study.row(row) for row in study.rows]
    lines = {
        column.heading: [column.value(each) for each in scores]
        for column in _columns(study, scores)
    }
    labels = [row.label for row in study.rows]
    plot_lines(labels, lines, study.settings.heading, study.settings.caption.rstrip("."), out)


# --- reading


def _read(experiment: Experiment, name: str, sources: Sequence[Path]) -> Study:
    settings = (experiment.tables.studies or {})[name]
    rows = study_rows(experiment, settings)
    shown = {benchmark: experiment.scored(benchmark) for benchmark in settings.columns}
    scores = {}
    for benchmark in filter(shown.get, shown):
        names = dict.fromkeys(name for row in rows for name in row.systems.get(benchmark, []))
        scores[benchmark] = _read_benchmark(shown[benchmark], list(names), sources)
    return Study(settings, rows, shown, scores)


def _read_benchmark(
    benchmark: str, systems: list[str], sources: Sequence[Path]
) -> dict[str, Scores]:
    """Return system -> its scores on a benchmark, without any where its file is missing."""
    paths = [path for path in sources if path.stem == benchmark and path.parent.name in systems]
    if not paths:
        return {name: Scores(NOTHING, name, (), (f"{name}/{benchmark}.json",)) for name in systems}
    read = read_scores(paths, benchmark, label=_label, order=systems)
    return {scores.system: scores for scores in read}


def _label(file: ScoreFile, row: Score) -> str:
    """Return "tatoeba fr-en": the benchmark, the languages of a row, and its split."""
    names = [file.languages.get(side, ENGLISH) for side in (row.source, row.target)]
    return f"{file.benchmark} {'-'.join(names)} {row.split}".strip()


# --- columns


def _columns(study: Study, scores: Sequence[Scores]) -> list[Column]:
    """Return the columns of benchmarks; with a part of the paper's where ours are other data."""
    columns = []
    for benchmark in study.scores:
        scored = study.shown[benchmark]
        own = sorted(label for label in labels_of(scores) if label.startswith(f"{scored} "))
        ways = {label: label.split()[1].split("-") for label in own}
        seen = [label for label in own if UNSEEN not in ways[label] and len({*ways[label]}) > 1]
        other, paper = _is_other(study, benchmark), record_of(benchmark)
        for name in study.settings.columns[benchmark]:
            way = name.replace("-", "->")
            members = seen if name == MEAN else [f"{scored} {name}"]
            printed = f"{paper.task or paper.title} {way}"
            columns.append(Column(f"{record_of(scored).title} {way}", members, printed, other))
    return columns


def _is_other(study: Study, benchmark: str) -> bool:
    """Return True if the scores in the place of a benchmark are of another one, or of other data
    or another protocol than a paper prints scores of.
    """
    declared = tables_of(benchmark).get(benchmark)
    paper = getattr(declared, "printed", None)
    read = [scores for scores in study.scores[benchmark].values() if scores.rows]
    fits = not paper or all(paper.fits(scores) for scores in read)
    return study.shown[benchmark] != benchmark or not fits


def _facts(experiment: Experiment, study: Study, sources: Sequence[Path]) -> list[Column]:
    models = {path.parent.name: path for path in sources if path.name == "model.json"}
    reports = [read_report(path) for path in sources if path.name == "decontamination.json"]
    report = reports[0] if reports else None
    columns = []
    for fact in study.settings.facts:
        given = {
            row.label: fact_of(fact, experiment.systems[row.model], models.get(row.model), report)
            for row in study.rows
        }
        columns.append(Column(FACT_HEADINGS[fact], [], fact, given=given))
    return columns


def _cost(experiment: Experiment, study: Study, cost: str, times: Mapping[str, Path]) -> Column:
    given = {
        row.label: cost_of(cost, experiment.systems[row.model], times[row.model])
        for row in study.rows
        if row.model in times
    }
    return Column(FACT_HEADINGS[cost], [], cost, given=given)


# --- printed rows and notes


def _printed(study: Study, name: str) -> Printed:
    """Return the printed rows of a study; values of other data than ours get a dagger."""
    others = _titles(name for name in study.scores if _is_other(study, name))
    return Printed(
        paper_of_study(name),
        partial(load_study, name),
        every=True,
        whole=True,
        dagger=f"as printed, of {others}; ours are of other data",
    )


def _about(study: Study) -> list[str]:
    """Say what the scores are of, and what stands in for what."""
    every = [[scores.file for scores in systems.values()] for systems in study.scores.values()]
    firsts = [[file for file in files if file is not NOTHING][:1] for files in every]
    files = [file for first in firsts for file in first]  # each stands for those of its benchmark
    data = [f"{record_of(file.benchmark).title} {file.version}: {file.metric}" for file in files]
    notes = [
        f"{', '.join(data)}, in percent; en->fr is from English, in which the queries are or a "
        f"classifier learns, to French. {BEST}"
    ]
    others = [(scored, name) for name, scored in study.shown.items() if scored not in ("", name)]
    pairs = ", ".join(f"{_titles([scored])} for {_titles([name])}" for scored, name in others)
    absent = [name for name, scored in study.shown.items() if not scored]
    return [
        *(notes if files else []),
        *([f"Stand-ins for benchmarks that the experiment lacks: {pairs}."] if others else []),
        *([f"Not among the benchmarks of the experiment: {_titles(absent)}."] if absent else []),
    ]


def _about_rows(study: Study) -> list[str]:
    """Say which rows are of several systems."""
    mixed = []
    for row in study.rows:
        systems = {study.shown[key]: name for key, name in row.names.items() if study.shown[key]}
        if len({*systems.values()}) > 1:
            parts = ", ".join(f"{_titles([key])} of {name}" for key, name in systems.items())
            mixed.append(f"{row.label}: {parts}")
    return [f"Rows of several systems: {'; '.join(mixed)}."] if mixed else []


def _titles(benchmarks: Iterable[str]) -> str:
    return " and ".join(record_of(name).title for name in benchmarks)


def _steps(experiment: Experiment, study: Study) -> dict[str, int]:
    """Return system -> its steps of training and those of the systems that it goes on from, of the
    systems whose scores are shown.
    """
    names = dict.fromkeys(name for systems in study.scores.values() for name in systems)
    return {name: _all_steps(experiment, name) for name in experiment.learning([*names])}


def _all_steps(experiment: Experiment, system: str) -> int:
    training = experiment.systems[system].train
    before = _all_steps(experiment, training.start_from) if training.start_from else 0
    return training.steps + before


# --- a row with the scores of several benchmarks


def table_of(
    columns: list[Column], notes: list[str], printed: Printed | None, heading: str = "Model"
) -> Declaration:
    """Return a table of some columns side by side, without deviations of the seeds."""
    wide = any(" " in name for name in headings(columns))
    return Declaration(
        benchmarks={},
        metric="",
        columns=lambda systems: columns,
        about=lambda systems: notes,
        printed=printed,
        blocks=lambda columns: [Block(headings(columns), spread=wide)],
        spread=False,
        heading=heading,
    )


def in_one_row(row: Sequence[Scores]) -> Scores:
    """Return scores on several benchmarks, or of several systems, as those of the first system."""
    every = tuple(score for scores in row for score in scores.rows)
    absent = tuple(file for scores in row for file in scores.absent)
    return replace(row[0], rows=every, absent=absent)


def steps_note(steps: Mapping[str, int]) -> list[str]:
    """Say how long the systems were trained: what most have, then those that differ."""
    if not steps:
        return []
    usual = max(steps.values(), key=list(steps.values()).count)
    others = [f"{name} {count:,}" for name, count in steps.items() if count != usual]
    return [f"Steps of training: {', '.join([f'{usual:,}', *others])}."]


# --- EMS v2 Table XIV: what each component is worth, and what a step costs


@dataclass(frozen=True)
class AblationColumns:
    """The columns that one benchmark has in the table, `ABLATION` of its `table` module.

    `title` is the paper's name of the benchmark and `means` what the numbers are; `columns`: the
    paper's heading -> the labels that its mean is over, as `table` labels rows.
    """

    title: str
    means: str
    table: Declaration
    columns: Callable[[], Mapping[str, Sequence[str]]]

    def read(self, paths: list[Path], order: list[str], families: Families | None) -> list[Scores]:
        """Read a benchmark; its name begins the labels, since another may have the same."""
        return read_scores(
            paths,
            paths[0].stem,
            self.table.metric,
            label=lambda file, row: f"{file.benchmark} {self.table.label(file, row)}",
            order=order,
            families=families,
            seen=self.table.seen,
        )


def write_ablation_table(
    scores: list[Path],
    out: Path,
    printed: Sequence[str],
    order: list[str],
    families: Families | None = None,
    times: Mapping[str, Path] | None = None,
    steps: Mapping[str, int] | None = None,
) -> None:
    """Write EMS v2 Table XIV of the systems `order` as .tex, .md and .csv beside `out`.

    `families` are systems that share a row, each with languages of its own; `times`: system -> its
    costs/train/*.times.jsonl, for a last column with the seconds of 1,000 steps; `steps`: system ->
    how many it was trained for, for a note, since a short training shows the form of the table and
    not what it is about. Raises `EmsError` for malformed files and scores of different data.
    """
    parts = {name: module(name, "table").ABLATION for name in joining("ablation")}
    files = {name: [path for path in scores if path.stem == name] for name in parts}
    read = {
        name: parts[name].read(paths, order, families) for name, paths in files.items() if paths
    }
    if not read:
        raise EmsError(
            f"the ablation table needs scores of {', '.join(parts)}, found none of them; name "
            "one under `benchmarks`"
        )
    names = [system.system for system in next(iter(read.values()))]
    systems = [
        in_one_row([row for systems in read.values() for row in systems if row.system == name])
        for name in names
    ]
    scored = labels_of(systems)
    columns = [
        part_of(heading, [f"{name} {label}" for label in labels], scored)
        for name in read
        for heading, labels in parts[name].columns().items()
    ]
    if times is not None:
        logs = {row.system: last_time(times[row.system]) for row in systems if row.system in times}
        given = {
            name: 1000 * seconds / step if step else None for name, (step, seconds) in logs.items()
        }
        columns.append(Column(SECONDS, [], SECONDS, given=given))
    versions = {name: rows[0].version for name, rows in read.items()}
    known = len({*versions.values()}) == 1 and PRINTED_AS in printed and PAPER.fits(systems[0])
    notes = [*_about_ablation(parts, versions, times), *steps_note(steps or {})]
    table = table_of(columns, notes, PAPER)
    write_sections(table, {"": systems}, out, [PRINTED_AS] if known else [], families)


def _about_ablation(
    parts: Mapping[str, AblationColumns],
    versions: Mapping[str, str],
    times: Mapping[str, Path] | None,
) -> list[str]:
    data = ", ".join(f"{parts[name].title} {version}" for name, version in versions.items())
    means = ", ".join(f"{part.title} {part.means}" for part in parts.values())
    absent = [part.title for name, part in parts.items() if name not in versions]
    notes = [
        f"{data}. Means in percent: {means}; n/m are n of the paper's m. Bold: best of our systems."
    ]
    if absent:
        notes.append(f"Not among the benchmarks of the experiment: {', '.join(absent)}.")
    if times is not None:
        notes.append(
            f"{SECONDS}: wall seconds of training, validation included, on our machine; the "
            "paper's are of four V100."
        )
    return notes
