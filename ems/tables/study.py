"""Tables of several benchmarks side by side: studies (`tables.studies`), and EMS v2 Table XIV.

A row may show another system for each benchmark, as the Lightweight paper calls two trainings
"ours" (docs/fidelity.md). Costs of training differ from run to run, so they have another table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from ems.base.errors import EmsError, mistake
from ems.base.files import read_table
from ems.bench.scores import ENGLISH, Score, ScoreFile
from ems.config.experiment import Experiment
from ems.config.languages import UNSEEN
from ems.config.plugins import benchmark as record_of
from ems.config.plugins import folder, joining
from ems.config.tables import MEAN, StudyRow, StudySettings, study_rows
from ems.tables import engine
from ems.tables.corpora import read_report
from ems.tables.declarations import MAJORITY, printed_rows, tables_of, words_of
from ems.tables.engine import BEST, Column, Declaration, PrintedRows, labels_of, write_sections
from ems.tables.logs import Times, last_time
from ems.tables.models import fact_of
from ems.tables.printed import load_study, load_table, paper_of_study
from ems.tables.scores import Families, Scores, in_one_row, read_scores
from ems.tables.table import Block, headings_of, note

NOTHING = ScoreFile("", [], {})  # in the place of a missing score file
SECONDS = "Sec./1k Steps"
PRINTED_AS = "EMS"  # the name in `tables.printed` that shows the printed rows


@dataclass(frozen=True)
class Study:
    settings: StudySettings
    rows: list[StudyRow]
    shown: dict[str, str]  # benchmark in the settings -> the one whose scores are shown, or ''
    scores: dict[str, dict[str, Scores]]  # benchmark in the settings -> system -> its scores

    @classmethod
    def read(cls, experiment: Experiment, name: str, sources: Sequence[Path]) -> "Study":
        """Read the score files in `sources`; a system without a file has no scores."""
        settings = (experiment.tables.studies or {})[name]
        rows = study_rows(experiment, settings)
        shown = {benchmark: experiment.scored(benchmark) for benchmark in settings.columns}
        scores: dict[str, dict[str, Scores]] = {}
        for key, benchmark in shown.items():
            systems = list(dict.fromkeys(name for row in rows for name in row.systems.get(key, [])))
            paths = [p for p in sources if p.stem == benchmark and p.parent.name in systems]
            if paths:
                read = read_scores(paths, benchmark, label=_label, order=systems)
                scores[key] = {each.system: each for each in read}
            elif benchmark:
                absent = {name: (f"{name}/{benchmark}.json",) for name in systems}
                scores[key] = {n: Scores(NOTHING, n, absent=file) for n, file in absent.items()}
        return cls(settings, rows, shown, scores)

    def row(self, row: StudyRow) -> Scores:
        """Return the scores of a row. Raises `EmsError` if two systems have the same direction."""
        named = [(own, row.systems.get(name, [])) for name, own in self.scores.items()]
        own = [systems[name] for systems, names in named for name in names]
        labels = [label for scores in own for label in scores.values]
        for label in labels:
            if labels.count(label) > 1:
                names = ", ".join(scores.system for scores in own if label in scores.values)
                raise EmsError(f"row {row.label}: {names} all have scores of {label}; name one")
        return in_one_row(own or [Scores(NOTHING, "")], row.label)

    def is_other(self, benchmark: str) -> bool:
        """Return True if the scores shown are of other data than the paper's."""
        paper = getattr(tables_of(benchmark).get(benchmark), "printed", None)
        read = [scores for scores in self.scores[benchmark].values() if scores.rows]
        fits = not paper or all(paper.fits(scores) for scores in read)
        return self.shown[benchmark] != benchmark or not fits

    def columns(self, scores: Sequence[Scores]) -> list[Column]:
        columns = []
        for benchmark in self.scores:
            scored, paper = self.shown[benchmark], record_of(benchmark)
            own = sorted(label for label in labels_of(scores) if label.startswith(f"{scored} "))
            ways = {label: label.split()[1].split("-") for label in own}
            seen = [label for label in own if UNSEEN not in ways[label] and len({*ways[label]}) > 1]
            other = self.is_other(benchmark)
            for name in self.settings.columns[benchmark]:
                way = name.replace("-", "->")
                members = seen if name == MEAN else [f"{scored} {name}"]
                printed = f"{paper.task or paper.title} {way}"
                columns.append(Column(f"{record_of(scored).title} {way}", members, printed, other))
        return columns


def write_study(
    experiment: Experiment, name: str, sources: Sequence[Path], out: Path, times: Times | None
) -> None:
    """Write a study of score files, of model.json of systems, and of the decontamination report,
    with `times` also its columns of costs. Raises `EmsError` for malformed files and scores of
    different data.
    """
    study = Study.read(experiment, name, sources)
    settings = study.settings
    models = {path.parent.name: path for path in sources if path.name == "model.json"}
    reports = (read_report(path) for path in sources if path.name == "decontamination.json")
    report = next(reports, None)
    facts = [*settings.facts, *(settings.costs if times is not None else ())]
    labels, remarks = headings_of("fact"), headings_of("fact", "note")
    columns = []
    for fact in facts:
        values = {}
        for row in study.rows:
            system, log = experiment.systems[row.model], (times or {}).get(row.model)
            values[row.label] = fact_of(fact, system, models.get(row.model), report, log)
        columns.append(Column(labels[fact], [], fact, by_system=values))
    scores = [study.row(row) for row in study.rows]
    trained = dict.fromkeys(name for systems in study.scores.values() for name in systems)
    steps = {name: _all_steps(experiment, name) for name in experiment.learning(trained)}
    notes = [*_about(study), *(remarks[fact] for fact in facts if fact in remarks)]
    printed = None
    if settings.printed:
        others = _titles(name for name in study.scores if study.is_other(name))
        printed = PrintedRows(
            source=paper_of_study(settings.printed),
            models=partial(load_study, settings.printed),
            all_rows=True,
            keep_mean=True,
            dagger=f"as printed, of {others}; ours are of other data",
        )
    columns += study.columns(scores)
    table = _declared(columns, [*notes, *_steps_note(steps)], printed)
    intervals = experiment.tables.intervals
    table = replace(table, heading=settings.heading, shared=MAJORITY, intervals=intervals)
    write_sections(table, {"": scores}, out, [settings.printed] if settings.printed else [])


def plot_study(experiment: Experiment, name: str, sources: Sequence[Path], out: Path) -> None:
    """Draw a study, a line per column over its rows, to `out` as .svg, .png and .pdf."""
    from ems.tables.figures import plot_lines  # imported late: matplotlib takes a second

    study = Study.read(experiment, name, sources)
    scores = [study.row(row) for row in study.rows]
    columns = study.columns(scores)
    lines = {column.heading: [column.value(each) for each in scores] for column in columns}
    labels = [row.label for row in study.rows]
    plot_lines(labels, lines, study.settings.heading, study.settings.caption.rstrip("."), out)


def _label(file: ScoreFile, row: Score) -> str:
    """Return benchmark, languages and split of a row: "tatoeba fr-en"."""
    names = [file.languages.get(side, ENGLISH) for side in (row.source, row.target)]
    return f"{file.benchmark} {'-'.join(names)} {row.split}".strip()


def _about(study: Study) -> list[str]:
    every = [[scores.file for scores in systems.values()] for systems in study.scores.values()]
    firsts = [[file for file in files if file is not NOTHING][:1] for files in every]
    files = [file for first in firsts for file in first]  # one file stands for its benchmark
    data = [f"{record_of(file.benchmark).title} {file.version}: {file.metric}" for file in files]
    notes = [note("study", data=", ".join(data), best=BEST)]
    others = [(scored, name) for name, scored in study.shown.items() if scored not in ("", name)]
    pairs = ", ".join(f"{_titles([scored])} for {_titles([name])}" for scored, name in others)
    absent = [name for name, scored in study.shown.items() if not scored]
    mixed = []
    for row in study.rows:
        systems = {study.shown[key]: name for key, name in row.names.items() if study.shown[key]}
        if len({*systems.values()}) > 1:
            parts = ", ".join(f"{_titles([key])} of {name}" for key, name in systems.items())
            mixed.append(f"{row.label}: {parts}")
    return [
        *(notes if files else []),
        *([f"Stand-ins for benchmarks that the experiment lacks: {pairs}."] if others else []),
        *([f"Not among the benchmarks of the experiment: {_titles(absent)}."] if absent else []),
        *([f"Rows of several systems: {'; '.join(mixed)}."] if mixed else []),
    ]


def _titles(benchmarks: Iterable[str]) -> str:
    return " and ".join(record_of(name).title for name in benchmarks)


def _all_steps(experiment: Experiment, system: str) -> int:
    """Return the steps of a system, including the systems that it starts from."""
    training = experiment.systems[system].train
    before = _all_steps(experiment, training.start_from) if training.start_from else 0
    return training.steps + before


def _declared(columns: list[Column], notes: list[str], printed: PrintedRows | None) -> Declaration:
    names = [column.heading for column in columns]
    return Declaration(
        benchmarks={},
        metric="",
        columns=lambda systems: columns,
        about=lambda systems: notes,
        printed=printed,
        blocks=lambda columns: [Block(names, spread=any(" " in name for name in names))],
        spread=False,
    )


def _steps_note(steps: Mapping[str, int]) -> list[str]:
    """Note the steps of training: the most common number, then the systems that differ."""
    if not steps:
        return []
    usual = max(steps.values(), key=list(steps.values()).count)
    others = [f"{name} {count:,}" for name, count in steps.items() if count != usual]
    return [f"Steps of training: {', '.join([f'{usual:,}', *others])}."]


# --- EMS v2 Table XIV: the worth of each component, and the costs of a step


def _ablation_part(benchmark: str) -> tuple[Declaration, str]:
    """Return the benchmark's table with the labels, and what describes their means."""
    shown = words_of(benchmark)["table"].items()
    return next((tables_of(benchmark)[n], own.ablation) for n, own in shown if own.ablation)


def _ablation_label(file: ScoreFile, row: Score) -> str:
    """Return a label with the benchmark, since two benchmarks may share labels."""
    return f"{file.benchmark} {_ablation_part(file.benchmark)[0].label(file, row)}"


def _ablation_columns(benchmarks: Iterable[str], scored: Sequence[str]) -> list[Column]:
    """Return the paper's columns: of codes, or of directions between languages and others."""
    columns = []
    for name in benchmarks:
        for row in read_table(folder(name) / "ablation.tsv"):
            pairs = product(row["languages"].split(), row["others"].split() or [""])
            ways = [f"{one}-{other}".rstrip("-") for one, other in pairs if one != other]
            labels = [f"{name} {way}" for way in ways]
            columns.append(engine.part_of(row["heading"], labels, scored))
    return columns


def write_ablation_table(
    scores: list[Path],
    out: Path,
    printed: Sequence[str],
    order: list[str],
    families: Families | None = None,
    times: Times | None = None,
    steps: Mapping[str, int] | None = None,
    intervals: bool = False,
) -> None:
    """Write EMS v2 Table XIV of the systems `order`, with `times` a column of the seconds of 1,000
    steps. `steps`: system -> its steps, for a note, since results of a short training mean little.
    Raises `EmsError` for malformed files and scores of different data.
    """
    read: dict[str, list[Scores]] = {}
    for name in joining("ablation"):
        if paths := [path for path in scores if path.stem == name]:
            (own, _), label = _ablation_part(name), _ablation_label
            read[name] = read_scores(paths, name, own.metric, label, order, families, own.seen)
    if not read:
        raise mistake("parts of an ablation", parts=joining("ablation"))
    every = [row for each in read.values() for row in each]
    names = [row.system for row in next(iter(read.values()))]
    systems = [in_one_row([row for row in every if row.system == name], name) for name in names]
    scored = sorted(labels_of(systems))
    versions = {name: rows[0].version for name, rows in read.items()}
    models = partial(load_table, "ems-v2-table14-ablation", "column")
    paper = printed_rows("", "ablation", models)
    known = len({*versions.values()}) == 1 and PRINTED_AS in printed and paper.fits(systems[0])
    if known:
        columns = _ablation_columns(read, scored)
    else:
        own = {name: [each for each in scored if each.startswith(f"{name} ")] for name in read}
        columns = [Column(f"{_titles([name])} ({len(of)})", of) for name, of in own.items()]
    data = ", ".join(f"{_titles([name])} {version}" for name, version in versions.items())
    means = ", ".join(f"{_titles([name])} {_ablation_part(name)[1]}" for name in read)
    counts = "n/m are n of the paper's m" if known else "in brackets: languages or directions"
    notes = [f"{data}. Means in percent: {means}; {counts}. {BEST}"]
    if times is not None:
        logs = {name: last_time(times[name]) for name in names if name in times}
        values = {name: 1000 * time / step if step else None for name, (step, time) in logs.items()}
        columns.append(Column(SECONDS, [], SECONDS, by_system=values))
        about = "wall seconds of training, validation included (lower is better), on our machine"
        about += "; the printed ones are for four V100" if known else ""
        notes.append(f"{SECONDS}: {about}.")
    table = _declared(columns, [*notes, *_steps_note(steps or {})], paper)
    table = replace(table, intervals=intervals)
    write_sections(table, {"": systems}, out, [PRINTED_AS] if known else [], families)
