"""The tables and figures of an experiment: their input files, and the functions that write them.
Benchmarks declare theirs in table.yaml and table.py, experiments further ones (`tables.studies`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ems.base.errors import EmsError, mistake
from ems.config.experiment import Experiment
from ems.config.plugins import benchmarks, joining, module
from ems.config.tables import StudySettings, study_rows
from ems.tables import corpora, models, study
from ems.tables.declarations import Shown, tables_of, words_of
from ems.tables.engine import Declaration, write_systems
from ems.tables.logs import Times
from ems.tables.printed import paper_of_study

ON_REQUEST = ("sweep",)  # no part of `all`
STUDIED = "A study of the experiment (`tables.studies` of its file)."


@dataclass(frozen=True)
class Output:
    """A table or figure of a benchmark, of a study or, without either, of all experiments."""

    kind: str  # its command: "table", "figure" or "timed"
    name: str
    shown: Shown
    benchmark: str = ""
    study: StudySettings | None = None

    def systems(self, experiment: Experiment) -> list[str]:
        names = experiment.shown
        match self.shown.among:
            case "families":
                members = {name for family in experiment.families.values() for name in family}
                return [name for name in names if name in members]
            case "unseen":
                known = names if self.benchmark in experiment.evalsets else []
                return [name for name in known if experiment.scores_unseen(self.benchmark, name)]
        return names

    def inputs(self, experiment: Experiment) -> list[str]:
        """Return the input files; [] if the experiment does not have this output."""
        if self.study:
            return _of_study(experiment, self.study)
        if self.benchmark:
            if self.kind == "figure":
                return scores(experiment, self.benchmark)
            sharing = [name for name, each in benchmarks().items() if each.family == self.benchmark]
            names, systems = [self.benchmark, *sharing], self.systems(experiment)
            files = [file for name in names for file in scores(experiment, name, systems)]
            return files[:1] if self.shown.first else files
        trained = experiment.learning(experiment.shown)
        match self.name:
            case "corpora" | "decontamination" | "filters" | "cleaning":
                return _report(experiment)
            case "vocabulary":
                systems = [experiment.systems[name] for name in experiment.shown]
                names = dict.fromkeys(system.vocabulary for system in systems if system.trained)
                folder = f"results/{experiment.name}/reports/vocabulary"
                return [f"{folder}/{name}.json" for name in names]
            case "models":
                files = _of_models(experiment, trained, "model.json")
                return [*files, *_report(experiment)] if files else []
            case "mining":
                systems, used = experiment.systems, set(experiment.tabled)
                for name in [*used]:
                    while name := systems[name].train.start_from:
                        used.add(name)
                names = experiment.learning([name for name in systems if name in used])
                names = [name for name in names if systems[name].objectives.coherence.weight]
                return _of_models(experiment, names, "mined/manifest.json")
            case "sweep":
                systems = dict.fromkeys(point.system for point in experiment.sweep)
                return _of_models(experiment, systems, "losses.jsonl")
            case "learning" | "learning_languages":
                names = trained if self.name == "learning" or experiment.validation else []
                return _of_models(experiment, names, "losses.jsonl")
            case "pairs":
                files = scores(experiment, joining("pairs")[0])
                return [*files, *_report(experiment)] if files else []
            case "ablation":
                names = joining("ablation")[:1] if self.kind == "figure" else joining("ablation")
                return _of_ablation(experiment, names)
            case "tradeoff":
                names = experiment.learning([*experiment.shown, *experiment.ablated])
                ablated = _of_ablation(experiment, joining("ablation"))
                return scores(experiment, joining("tradeoff")[0], names) if ablated else []
        raise ValueError(self.name)

    def make(
        self, experiment: Experiment, sources: list[Path], out: Path, times: Times | None = None
    ) -> None:
        """Write a table or figure; `times` adds costs. Raises `EmsError` for malformed sources."""
        printed, families = experiment.tables.printed, experiment.families
        if self.study and self.kind == "figure":
            study.plot_study(experiment, self.name, sources, out)
        elif self.study:
            study.write_study(experiment, self.name, sources, out, times)
        elif self.benchmark and self.kind == "figure":
            module(self.benchmark, "table").FIGURES[self.name](sources, out, families)
        elif self.benchmark:
            declared = tables_of(self.benchmark)[self.name]
            if callable(declared):  # it writes the table itself
                declared(sources, out)
                return
            declared = replace(declared, intervals=experiment.tables.intervals)
            order = self.systems(experiment)
            kept = [path for path in sources if not self.shown.among or path.parent.name in order]
            write_systems(declared, kept, out, printed, order, families)
        elif self.kind == "figure" or self.name in ("learning", "tradeoff"):
            self._draw(experiment, sources, out, times)
        else:
            match self.name:
                case "corpora":
                    corpora.write_corpora_table(sources[0], out, printed)
                case "decontamination":
                    corpora.write_decontamination_table(sources[0], out)
                case "filters":
                    corpora.write_filters_table(sources[0], out)
                case "vocabulary":
                    corpora.write_vocabulary_table(sources, out)
                case "models":
                    models.write_models_table(sources[:-1], sources[-1], printed, out)
                case "mining":
                    models.write_mining_table(sources, out)
                case "sweep":
                    logs = {path.parent.name: path for path in sources}
                    models.write_sweep_table(experiment.sweep, logs, out)
                case "ablation":
                    order = experiment.learning(experiment.ablated)
                    steps = {name: experiment.systems[name].train.steps for name in order}
                    own = (order, families, times, steps, experiment.tables.intervals)
                    study.write_ablation_table(sources, out, printed, *own)

    def _draw(
        self, experiment: Experiment, sources: list[Path], out: Path, times: Times | None
    ) -> None:
        from ems.tables import curves, figures  # imported late: matplotlib takes a second

        files = {path.parent.name: path for path in sources}
        # loss logs: systems of the tables first, in their order
        first = [name for name in experiment.shown if name in files]
        logs = {name: files[name] for name in dict.fromkeys([*first, *files])}
        match self.name:
            case "cleaning":
                figures.plot_cleaning(sources[0], out)
            case "pairs":
                figures.plot_pairs(sources[:-1], sources[-1], out, experiment.families)
            case "ablation":
                order = [name for name in experiment.ablated if name in files]
                from ems.tables.compare import plot_deltas  # SciPy's statistics take another

                plot_deltas(sources, order, out, experiment.families)
            case "learning":
                curves.plot_curves(logs, times, out)
            case "learning_languages":
                curves.plot_languages(logs, out)
            case "tradeoff":
                figures.plot_tradeoff(sources, times or {}, out)


Outputs = dict[str, Output]


def scores(experiment: Experiment, benchmark: str, systems: list[str] | None = None) -> list[str]:
    """Return the score files of `systems` (default: in the tables); [] for other benchmarks."""
    names = experiment.shown if systems is None else systems
    known = benchmark in experiment.benchmarks
    folder = f"results/{experiment.name}/scores"
    return [f"{folder}/{name}/{benchmark}.json" for name in names] if known else []


def _report(experiment: Experiment) -> list[str]:
    return [f"results/{experiment.name}/reports/decontamination.json"]


def _of_models(experiment: Experiment, systems: Iterable[str], file: str) -> list[str]:
    return [f"results/{experiment.name}/models/{name}/{file}" for name in systems]


def _of_ablation(experiment: Experiment, names: list[str]) -> list[str]:
    """Return the score files of the ablation, where the first benchmark has two systems."""
    systems = experiment.learning(experiment.ablated)
    if len(systems) < 2 or names[0] not in experiment.benchmarks:
        return []
    return [file for each in systems for name in names for file in scores(experiment, name, [each])]


def _of_study(experiment: Experiment, settings: StudySettings) -> list[str]:
    if not (settings.facts or any(map(experiment.scored, settings.columns))):
        return []
    rows = study_rows(experiment, settings)
    named = [(experiment.scored(name), own) for row in rows for name, own in row.systems.items()]
    files = [file for name, systems in named for file in scores(experiment, name, systems)]
    if settings.costs or "parameters" in settings.facts:
        names = experiment.learning([row.model for row in rows])
        files += _of_models(experiment, names, "model.json")
    if {"raw_pairs", "pairs"} & {*settings.facts}:
        files += _report(experiment)
    return list(dict.fromkeys(files))


@cache
def outputs() -> dict[str, Outputs]:
    """Return kind -> name -> output, without studies; tables are in the order of the PDF."""
    words = words_of().items()
    every = {kind: {name: Output(kind, name, own[name]) for name in own} for kind, own in words}
    for benchmark in benchmarks():
        for kind, declared in words_of(benchmark).items():
            for name, shown in declared.items():
                every[kind][name] = Output(kind, name, shown, benchmark)
    tables = sorted(every["table"].values(), key=lambda output: (output.shown.place, output.name))
    return {**every, "table": {output.name: output for output in tables}}


def outputs_of(experiment: Experiment) -> dict[str, Outputs]:
    """Return all outputs of an experiment, studies last. Raises `EmsError` for a name in use."""
    every = {kind: dict(known) for kind, known in outputs().items()}
    taken = {*every["table"], *every["figure"]}
    for place, (name, own) in enumerate((experiment.tables.studies or {}).items()):
        if name in taken:
            raise EmsError(f"tables.studies.{name}: this is the name of another table; rename it")
        paper = paper_of_study(own.printed) if own.printed else ""
        report = f"{own.caption} {STUDIED}"
        shown = Shown(caption=own.caption, place=20_000 + place, paper=paper, report=report)
        kinds = {"table": True, "figure": own.figure, "timed": own.costs}
        for kind in filter(kinds.get, kinds):
            every[kind][name] = Output(kind, name, shown, study=own)
    return every


def input_files(named: Mapping[str, Output], experiment: Experiment) -> dict[str, list[str]]:
    """Return output -> input files, for the outputs that the experiment has."""
    inputs = {name: output.inputs(experiment) for name, output in named.items()}
    return {name: files for name, files in inputs.items() if files}


def times_of(experiment: Experiment, sources: list[str]) -> list[str]:
    """Return the logs of training times of the systems that have files in `sources`."""
    names = experiment.learning([Path(file).parent.name for file in sources])
    return [f"results/{experiment.name}/costs/train/{name}.times.jsonl" for name in names]


def captions(experiment: Experiment, names: list[str]) -> list[str]:
    """Return NAME=CAPTION of each table for the PDF, with the paper's table if rows are printed."""
    every = outputs_of(experiment)["table"]
    papers = {n: every[n].shown.paper for n in names if experiment.tables.printed or every[n].study}
    ends = {name: f" As {paper}." for name, paper in papers.items() if paper}
    return [f"{name}={every[name].shown.caption}{ends.get(name, '')}" for name in names]


def write_together(table: str, experiments: Sequence[Experiment], out: Path) -> list[Path]:
    """Write a table of the systems of several experiments; return the score files used.

    A system whose name is in two experiments is named "EXPERIMENT: SYSTEM". Files of evaluation
    data that several experiments read must be the same. Raises `EmsError` for a table of one
    experiment alone, an experiment without its scores, and scores that cannot share a table.
    """
    named = {name: each.benchmark for name, each in outputs()["table"].items() if each.benchmark}
    tables = {name: tables_of(benchmark)[name] for name, benchmark in named.items()}
    declared = {name: each for name, each in tables.items() if isinstance(each, Declaration)}
    if table not in declared:
        raise mistake("table of experiments", table=table, declared=declared)
    output = outputs()["table"][table]
    systems = {each.name: output.systems(each) for each in experiments}
    counts = Counter(name for each in experiments for name in {*systems[each.name], *each.families})
    paths: dict[Path, str] = {}  # score file -> its row
    order, families = [], {}
    for each in experiments:
        files = [Path(file) for file in output.inputs(each)]
        if not files:
            raise mistake("no scores of an experiment", each=each, table=table)
        names = [*systems[each.name], *each.families]
        rows = {name: f"{each.name}: {name}" if counts[name] > 1 else name for name in names}
        paths |= {path: rows[path.parent.name] for path in files}
        order += [rows[system] for system in systems[each.name]]
        whole = {name: own for name, own in each.families.items() if {*own} <= rows.keys()}
        families |= {rows[name]: [rows[member] for member in own] for name, own in whole.items()}
    printed = list(dict.fromkeys(name for each in experiments for name in each.tables.printed))
    intervals = any(each.tables.intervals for each in experiments)
    shared = replace(declared[table], intervals=intervals)
    write_systems(shared, [*paths], out, printed, order, families, paths)
    return list(paths)
