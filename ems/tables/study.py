"""Studies: tables and figures whose rows an experiment chooses one by one (`tables.studies`).

A row may show each benchmark of another system, as the Lightweight paper calls two trainings "ours"
(docs/fidelity.md). A printed value beside scores of other data, like those of a benchmark that
stands in for the paper's, carries a dagger. Where a classifier was scored, the accuracy of the most
frequent class stands under our rows. What training cost differs from run to run, so its
columns are only in the table of costs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ems.base.errors import EmsError
from ems.bench.scores import ENGLISH, Score, ScoreFile
from ems.config.experiment import Experiment
from ems.config.languages import UNSEEN
from ems.config.plugins import benchmark as record_of
from ems.config.plugins import module
from ems.config.studies import StudyRow, study_rows
from ems.config.tables import MEAN, StudySettings
from ems.tables.accuracy import MAJORITY
from ems.tables.corpora import read_report
from ems.tables.engine import BEST, Column, Printed, labels_of, write_sections
from ems.tables.facts import HEADINGS, NOTES, cost_of, fact_of
from ems.tables.printed import load_study, paper_of_study
from ems.tables.scores import Scores, read_scores
from ems.tables.several import in_one_row, steps_note, table_of

NOTHING = ScoreFile("", [], {})  # of a row without scores


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
        own = [of[name] for key, of in self.scores.items() for name in row.systems.get(key, [])]
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
    notes += [NOTES[name] for name in [*settings.facts, *costs] if name in NOTES]
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
    shown = {of: experiment.scored(of) for of in settings.columns}
    scores = {}
    for of in filter(shown.get, shown):
        names = dict.fromkeys(name for row in rows for name in row.systems.get(of, []))
        scores[of] = _read_benchmark(shown[of], list(names), sources)
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
    for of in study.scores:
        scored = study.shown[of]
        own = sorted(label for label in labels_of(scores) if label.startswith(f"{scored} "))
        ways = {label: label.split()[1].split("-") for label in own}
        seen = [label for label in own if UNSEEN not in ways[label] and len({*ways[label]}) > 1]
        other = _is_other(study, of)
        for name in study.settings.columns[of]:
            way, paper = name.replace("-", "->"), record_of(of)
            members = seen if name == MEAN else [f"{scored} {name}"]
            printed = f"{paper.task or paper.title} {way}"
            columns.append(Column(f"{record_of(scored).title} {way}", members, printed, other))
    return columns


def _is_other(study: Study, benchmark: str) -> bool:
    """Return True if the scores in the place of a benchmark are of another one, or of other data
    or another protocol than a paper prints scores of.
    """
    declared = module(benchmark, "table").TABLES.get(benchmark)
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
        columns.append(Column(HEADINGS[fact], [], fact, given=given))
    return columns


def _cost(experiment: Experiment, study: Study, cost: str, times: Mapping[str, Path]) -> Column:
    given = {
        row.label: cost_of(cost, experiment.systems[row.model], times[row.model])
        for row in study.rows
        if row.model in times
    }
    return Column(HEADINGS[cost], [], cost, given=given)


# --- printed rows and notes


def _printed(study: Study, name: str) -> Printed:
    """Return the printed rows of a study; values of other data than ours get a dagger."""
    others = _titles(of for of in study.scores if _is_other(study, of))
    return Printed(
        paper_of_study(name),
        partial(load_study, name),
        every=True,
        whole=True,
        dagger=f"as printed, of {others}; ours are of other data",
    )


def _about(study: Study) -> list[str]:
    """Say what the scores are of, and what stands in for what."""
    files = [file for systems in study.scores.values() for file in _files(systems.values())]
    data = ", ".join(f"{record_of(of.benchmark).title} {of.version}: {of.metric}" for of in files)
    notes = [
        f"{data}, in percent; en->fr is from English, in which the queries are or a classifier "
        f"learns, to French. {BEST}"
    ]
    others = {of: scored for of, scored in study.shown.items() if scored not in ("", of)}
    pairs = ", ".join(f"{_titles([scored])} for {_titles([of])}" for of, scored in others.items())
    absent = [of for of, scored in study.shown.items() if not scored]
    return [
        *(notes if files else []),
        *([f"Stand-ins for benchmarks that the experiment lacks: {pairs}."] if others else []),
        *([f"Not among the benchmarks of the experiment: {_titles(absent)}."] if absent else []),
    ]


def _files(systems: Iterable[Scores]) -> list[ScoreFile]:
    """Return the first file that was read, which stands for the others."""
    return [scores.file for scores in systems if scores.file is not NOTHING][:1]


def _about_rows(study: Study) -> list[str]:
    """Say which rows are of several systems."""
    mixed = []
    for row in study.rows:
        names = {study.shown[of]: name for of, name in row.names.items() if study.shown[of]}
        if len({*names.values()}) > 1:
            parts = ", ".join(f"{_titles([of])} of {name}" for of, name in names.items())
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
    return training.steps + (
        _all_steps(experiment, training.start_from) if training.start_from else 0
    )
