"""Paths, targets and params of an experiment, for the rules of Snakemake.

The rules contain no logic: each computed value is an attribute or a method of `Workflow`, or of
`Jobs` (`ems.workflow.jobs`) if it depends on a job. Paths are patterns with Snakemake's wildcards.
Errors are `EmsError`: ems never imports Snakemake.
"""

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any

from ems.base.files import read_table
from ems.base.processes import VARIABLE, look_rarely
from ems.base.provenance import digest, source_hash
from ems.base.records import Json
from ems.base.schema import CODE
from ems.config.experiment import MULTIWAY, Corpus
from ems.config.file import AFRESH
from ems.config.plugins import benchmark, benchmarks, sets_of
from ems.config.stages import stage_settings
from ems.corpora.evalsets.sets import default_folder, set_files, units_of
from ems.corpora.locations import archives_of
from ems.corpora.slots import PLANNED
from ems.tables.registry import ON_REQUEST, captions, input_files, outputs_of, scores
from ems.workflow import plan
from ems.workflow.made import Made, is_locked
from ems.workflow.parts import Parts, parts_of

FORMS = ("moses", "mined", "txt", "txt.gz")  # of downloads: folders, and suffixes of documents
LANGUAGES = f"{CODE}(-{CODE})?"  # a pair, or the one language of documents
Pairs = Iterable[tuple[Corpus, str]]  # of language pairs
Wildcards = Any  # Snakemake's: values of a job's wildcards, as attributes and as a mapping


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches one of the names; without names it never matches."""
    return "|".join(map(re.escape, names)) or "(?!)"


def source_of(modules: Iterable[str]) -> str:
    return "".join(map(source_hash, modules))


def of_pairs(pattern: str, pairs: Pairs, **others: str) -> list[str]:
    return [
        pattern.format(label=corpus.label, version=corpus.version, pair=pair, **others)
        for corpus, pair in pairs
    ]


class Workflow:
    """One experiment, planned and checked, for the rules; `main` is False in a job of a cluster."""

    def __init__(self, config: Json, main: bool = True, dry_run: bool = False) -> None:
        # Snakemake 9.27 knows its executor, and a mode like --unlock, only after the rules are read
        profiles = os.environ.get("SNAKEMAKE_PROFILE", "")  # "slurm", or "[slurm, slurm/site.yaml]"
        words = [*sys.argv, *re.split(r"[\[\], ]+", profiles)]
        self.read_at, self.main, self.dry_run = time.time(), main, dry_run
        self.starts = main and plan.plans_jobs(words)
        self.on_cluster = main and plan.on_slurm(words)
        # no `prepare` job runs on this machine: its programs cannot be checked here
        elsewhere = dry_run or self.on_cluster or not self.starts
        self.plan = plan.plan(config, elsewhere=elsewhere, jobs=self.starts)
        self.experiment, self.site = self.plan.experiment, self.plan.site
        self.name, self.data = self.experiment.name, self.site.data
        self.results = f"results/{self.name}"
        self.logs_folder = f"{self.results}/logs"
        self.costs = f"{self.results}/costs"
        self.settings: dict[str, Json] = {}  # hash -> settings of this run's jobs
        # segmenters that may be installed where jobs run
        self.missing = self.plan.missing if main else ()
        self._name_paths()
        self._name_systems()
        self._name_outputs()
        self._name_targets()

    def _name_paths(self) -> None:
        """Set an attribute for each pattern of paths.tsv."""
        through = f"{MULTIWAY}/{self.experiment.multiway.through or 'none'}"
        places = {"data": self.data, "results": self.results, "through": through}
        for row in read_table(Path(__file__).with_name("paths.tsv")):
            setattr(self, row["name"], Template(row["path"]).substitute(places))

    def _name_systems(self) -> None:
        systems, site, export = self.experiment.systems, self.site, self.experiment.export
        self.trained = [name for name, system in systems.items() if system.trained]
        self.fitted = [name for name, system in systems.items() if system.fitted]
        trains = {name: systems[name].train for name in self.trained}
        on_gpus = [name for name, train in trains.items() if train.device != "cpu" and train.steps]
        self.on_nodes = on_gpus if site.nodes > 1 else []  # trained on several machines
        self.on_one = [name for name in self.trained if name not in self.on_nodes]
        tabled = [systems[name] for name in self.experiment.tabled]  # others are made on request
        used = [system.vocabulary for system in tabled if system.trained or system.base_system]
        self.vocabularies = list(dict.fromkeys(used))
        flags = [flag for flag in ("onnx", "int8", "without_segmenters") if getattr(export, flag)]
        self.export_flags = [f"--{flag.replace('_', '-')}" for flag in flags]
        self.export_flags += ["--dimensions", str(export.dimensions)] if export.dimensions else []

    def _name_outputs(self) -> None:
        experiment = self.experiment
        self.outputs = outputs_of(experiment)
        self.input_files = {kind: input_files(of, experiment) for kind, of in self.outputs.items()}
        self.tables, self.figures = self.input_files["table"], self.input_files["figure"]
        timed = self.input_files["timed"]
        self.timed_tables = [name for name in timed if name in self.tables]
        self.timed_figures = [name for name in timed if name not in self.tables]
        self.table_names = [name for name in self.tables if name not in ON_REQUEST]
        self.captions = captions(experiment, self.table_names)
        names = experiment.benchmarks
        self.all_scores = [path for name in names for path in scores(experiment, name)]
        learning = experiment.learning(experiment.shown)
        self.learned = [path for name in names for path in scores(experiment, name, learning)]
        self.learned_models = [self.model_json.format(system=name) for name in learning]
        self.scores_of_system = [self.scores.replace("{benchmark}", name) for name in names]
        trained = [name for name in experiment.tabled if name in self.trained]
        self.losses = [f"{self.model}/losses.jsonl".format(system=name) for name in trained]
        validation = [(corpus, pair) for corpus in experiment.validation for pair in corpus.pairs]
        self.validation_pairs = of_pairs(self.clean, validation)
        self.validation_parts = self.parts_with(self.part, validation)
        self.joined_pairs = of_pairs(self.segmented, experiment.joined())  # through a translation
        self.joined_parts = self.parts_with(self.part, experiment.joined())
        self.joined_reports = self.multiway_reports if experiment.multiway.through else []

    def _name_targets(self) -> None:
        experiment, results = self.experiment, self.results
        shown = [f"tables/{table}.tex" for table in self.table_names]
        shown += [f"figures/{figure}.svg" for figure in self.figures]
        self.selected_targets = [*(f"results/{path}" for path in shown), "results/report.html"]
        summary = ["costs.tex", *(f"{name}.tex" for name in self.timed_tables)]
        summary += [f"{name}.svg" for name in self.timed_figures]
        self.reported = [f"{results}/{path}" for path in shown]
        self.reported += [f"{self.costs}/summary/{name}" for name in summary]
        made = [name for name in experiment.tabled if name in self.trained + self.fitted]
        evalsets = self.evalset_files(*experiment.evalsets)
        archives = []
        for _, corpus in experiment.all_corpora():
            if not corpus.aligned:  # from documents, as the first step of their text
                archives += self.fetched_of(corpus, corpus.pairs)
        patterns, names = (self.index, self.vocabulary_report), self.vocabularies
        per_vocabulary = [each.format(vocabulary=name) for each in patterns for name in names]
        self.targets = {  # name of the rule -> files
            "data": [*dict.fromkeys(archives), *evalsets],  # parts of a corpus share its archives
            "evalsets": evalsets,
            "text": [self.decontamination, *per_vocabulary],
            "models": [self.model_json.format(system=name) for name in made],
            "tables": [*self.reported, f"{results}/metrics/scores.json", self.report],
            "exports": [self.export.format(system=name) for name in experiment.export.systems],
        }

    def fetched_of(self, corpus: Corpus, pairs: Iterable[str]) -> list[str]:
        """Return the receipts of a corpus's downloads, or its files that are in place."""
        paths = [path for pair in pairs for path in archives_of(corpus, pair, Path(self.data))]
        return list(dict.fromkeys(self.receipts.get(str(path), str(path)) for path in paths))

    @cached_property
    def receipts(self) -> dict[str, str]:
        """The receipt of each file of a corpus that jobs fetch together."""
        paths, experiment, data = [], self.experiment, Path(self.data)
        for _, corpus in experiment.all_corpora():
            if not (corpus.paths or corpus.path or corpus.dumped):
                paths += [file for pair in corpus.pairs for file in archives_of(corpus, pair, data)]
        for name, evalset in experiment.evalsets.items():
            if benchmark(name).corpus and not (evalset.path or evalset.embedded):
                files = set_files(experiment, name, default_folder(experiment, name, data))
                paths += [path for path in files if path.parent.name in FORMS]
        receipts = {}
        for path in paths:
            kind, corpus, version, *_ = path.relative_to(self.data).parts
            form = path.parent.name if kind == "opus" else path.name.partition(".")[2]
            place = {"kind": kind, "corpus": corpus, "version": version, "form": form}
            receipts[str(path)] = self.fetched.format(**place)
        return receipts

    @cached_property
    def parts(self) -> Parts:
        """The part of each language pair of each corpus, whose pairs share a job."""
        return parts_of(self.experiment, Path(self.data), self.site.job_mb)

    def parts_with(self, pattern: str, pairs: Pairs, **others: str) -> list[str]:
        """Return the pattern filled in for each part that has one of these language pairs."""
        places = [(c.label, c.version, self.parts[c.label, c.version][pair]) for c, pair in pairs]
        return [
            pattern.format(label=label, version=version, part=part, **others)
            for label, version, part in dict.fromkeys(places)
        ]

    def evalset_folders(self, names: Iterable[str]) -> list[str]:
        data = Path(self.data)
        return [f"{name}={default_folder(self.experiment, name, data)}" for name in names]

    def evalset_files(self, *names: str) -> list[str]:
        """Return the files of the sets in use that jobs wait for: receipts, or files in place."""
        experiment, files = self.experiment, []
        for name in [name for name in names if name in experiment.evalsets]:
            folder = default_folder(experiment, name, Path(self.data))
            if experiment.evalsets[name].embedded:
                files.append(self.mirror)
            elif units_of(experiment, name):
                version = experiment.evalsets[name].version
                files.append(self.fetched_set.format(evalset=name, version=version))
            else:
                own = map(str, set_files(experiment, name, folder))
                files += [self.receipts.get(path, path) for path in own]
        return list(dict.fromkeys(files))

    # --- the start and the end of Snakemake

    def prepare(self) -> None:
        """Set up this process and its jobs. Raises `EmsError` if a run could not work."""
        look_rarely()
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # only the trainer handles Slurm's warning
        os.environ[VARIABLE] = str(os.getpid())  # a job stops when this process ends
        # not in `params:`, where a change would repeat finished trainings
        os.environ[AFRESH] = "1" if self.site.afresh else ""
        if self.main:  # files that another Snakemake fetches from now on are not fetched again
            os.environ[PLANNED] = str(self.read_at)
        if not self.starts:
            return
        plan.check_times(self.results, self.data)
        if self.on_cluster:
            plan.check_cluster(self.plan)
        if self.on_cluster and not self.dry_run:
            plan.check_queue()
        if not self.dry_run and not is_locked():
            with suppress(FileExistsError):  # a link that leads nowhere, which jobs report
                os.makedirs(self.data, exist_ok=True)  # own text alone fetches nothing into it
            made = Made(self.name)
            made.restore()
            made.save({})

    def changes(self, jobs: Iterable[Any]) -> list[str]:
        """Return a line per changed setting or source because of which jobs run."""
        return Made(self.name).changes(jobs, self.settings) if self.starts else []

    def keep_records(self) -> None:
        """Write the records of the outputs (`.made`) at the end of a run."""
        if self.starts:
            Made(self.name).save(self.settings)

    # --- what every rule has

    @property
    def usable(self) -> list[str]:
        """The benchmarks that the experiment has the data of."""
        evalsets = set(self.experiment.evalsets)
        return [name for name in benchmarks() if evalsets.issuperset(sets_of(name))]

    def labels_of(self, role: str) -> str:
        """Return a regular expression for the labels of the corpora of a role, in paths."""
        places = [(c.label, c.version) for each, c in self.experiment.all_corpora() if each == role]
        escaped = [(re.escape(label), re.escape(version)) for label, version in places]
        return "|".join(f"{label}(?=/{version}/)" for label, version in escaped) or "(?!)"

    def logs(self, log: str, costs: str = "") -> dict[str, str]:
        """Return the log and the costs of a job; `costs` ending in "/" takes the name of the log.
        Costs are declared as logs, since a missing output would run the job again.
        """
        path = costs if costs and not costs.endswith("/") else costs + log
        return {"log": f"{self.logs_folder}/{log}.log", "costs": f"{self.costs}/{path}.json"}

    def stage(
        self, name: str, modules: Iterable[str] | Callable[..., Iterable[str]], reads: str = ""
    ) -> dict[str, Callable[..., Any]]:
        """Return the params of a rule: the flags of its settings and the hash of its source.
        `name`: the stage whose settings a job reads, narrowed by the wildcards in `reads`.
        `modules`: the modules that a job runs, or a function of its wildcards.
        """

        def settings(wildcards: Wildcards) -> list[str]:
            parts = {key: wildcards[key] for key in reads.split()}
            read = stage_settings(self.experiment, name, **parts)
            self.settings[expect := digest(read)] = read
            return ["--experiment", self.name, "--expect", expect]

        def code(wildcards: Wildcards) -> str:
            return source_of(modules(wildcards) if callable(modules) else modules)

        return {"settings": settings, "code": code}
