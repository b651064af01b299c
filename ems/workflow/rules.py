"""What the rules of Snakemake are made of, for one experiment: paths, targets, params, inputs.

The rules hold no logic: each value that is computed is an attribute or a method of `Workflow`.
Paths are patterns with Snakemake's wildcards. A method with the argument `wildcards` is a function
of a job, which Snakemake calls when it plans the job; it recognises the other arguments (`input`,
`output`, `threads`, `attempt`) by their names. Errors are `EmsError`: ems never imports Snakemake.
"""

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.base.processes import VARIABLE, look_rarely
from ems.base.provenance import digest
from ems.base.schema import CODE, LABEL, NAME, Json
from ems.bench.encoders import model_files
from ems.config.experiment import EMBEDDED, MULTIWAY, WIKIPEDIA, Corpus
from ems.config.load import AFRESH
from ems.config.plugins import benchmark, benchmarks, sets_of
from ems.config.stages import stage_settings
from ems.config.systems import SHARED, SystemSettings
from ems.corpora.evalsets.sets import default_folder, fetched_files, manifest_name, unit_source
from ems.corpora.locations import text_file
from ems.corpora.own import own_files
from ems.corpora.slots import PLANNED
from ems.tables.pdf import check_latex
from ems.tables.registry import ASKED, captions, made_of, outputs_of, scores, times_of
from ems.workflow.job_modules import (
    bench_modules,
    demo_modules,
    evalkeys_modules,
    figure_modules,
    segment_modules,
    source_of,
    table_modules,
)
from ems.workflow.made import Made, is_locked
from ems.workflow.plan import (
    check_cluster,
    check_queue,
    check_times,
    on_slurm,
    plan,
    plans_jobs,
    segments_elsewhere,
)

Wildcards = Any  # of Snakemake: the values of a job's wildcards as attributes, and as a mapping


def command_line() -> list[str]:
    """Return the words of Snakemake's command line and of the profiles in its environment.

    Snakemake 9.27 knows its executor, and a mode like --unlock, only after it has read the rules.
    """
    profiles = os.environ.get("SNAKEMAKE_PROFILE", "")  # "slurm", or "[slurm, slurm/site.yaml]"
    return [*sys.argv, *re.split(r"[\[\], ]+", profiles)]


def one_of(names: Iterable[str]) -> str:
    """Return the pattern of a wildcard that is one of these names (of none: nothing fits)."""
    return "|".join(map(re.escape, names)) or "(?!)"


def per_attempt(per_thread: int = 0, **resources: int) -> dict[str, Callable[..., int]]:
    """Return functions of resources: a job that ran out of one is tried again with more.

    `per_thread` is the memory (MB) that each thread of a job adds to its `mem_mb`.
    """

    def grows(base: int, more: int) -> Callable[..., int]:
        def value(wildcards: Wildcards, threads: int, attempt: int) -> int:
            return (base + more * threads) * attempt

        return value

    return {
        name: grows(base, per_thread if name == "mem_mb" else 0) for name, base in resources.items()
    }


def options(*names: str, folders: bool = False) -> Callable[..., list[str]]:
    """Return a function of params: `--name FILE ...` for each of these inputs that a job has.

    With `folders` the word is the folder of the input's first file.
    """

    def words(wildcards: Wildcards, input: Any) -> list[str]:
        given = []
        for name in names:
            files = [input[name]] if isinstance(input[name], str) else input[name]
            if files:
                values = [str(Path(files[0]).parent)] if folders else files
                given += [f"--{name.replace('_', '-')}", *values]
        return given

    return words


def folder_of_output(wildcards: Wildcards, output: Any) -> str:
    return str(Path(output[0]).parent)


def folder_of_model(wildcards: Wildcards, input: Any) -> str:
    return str(Path(input.model).parent)


def first_output(wildcards: Wildcards, output: Any) -> str:
    return output[0]


class Workflow:
    """One experiment, planned and checked, as the rules see it.

    `config` is Snakemake's, with what its command line overrides; `main` is false in a job of a
    cluster, which is a Snakemake of its own and checks what it needs itself.
    """

    def __init__(self, config: Json, main: bool = True, dry_run: bool = False) -> None:
        words = command_line()
        self.read_at, self.main, self.dry_run = time.time(), main, dry_run
        self.starts = main and plans_jobs(words)
        self.on_cluster = main and on_slurm(words)
        elsewhere = not main or dry_run or segments_elsewhere(words)
        self.plan = plan(config, elsewhere=elsewhere, jobs=self.starts)
        self.experiment, self.site = self.plan.experiment, self.plan.site
        self.name, self.data = self.experiment.name, self.site.data
        self.results = f"results/{self.name}"
        self.logs_folder = f"{self.results}/logs"
        self.costs = f"{self.results}/costs"
        self.settings: dict[str, Json] = {}  # of the jobs of this run, by their hash
        self._name_paths()
        self._name_systems()
        self._name_targets()

    def _name_paths(self) -> None:
        data, results = self.data, self.results
        release = f"{data}/opus/{{corpus}}/{{version}}"
        pair = "{label}/{version}/{pair}"
        through = f"{MULTIWAY}/{self.experiment.multiway.through or 'none'}"
        self.mirror = f"{data}/{EMBEDDED}/manifest.json"  # of the data that ems writes for the demo
        self.archive = f"{release}/moses/{{pair}}.txt.zip"
        self.mined = f"{release}/mined/{{corpus}}.{{pair}}.tsv.gz"
        self.documents = f"{release}/{{file}}"
        self.text = f"{data}/documents/{{corpus}}/{{version}}/{{pair}}.txt{{packed}}"
        self.dump = f"{data}/dumps/{{corpus}}/{{version}}/{{pair}}.xml.bz2"
        self.wikipedia_dump = self.dump.replace("{corpus}", WIKIPEDIA)
        self.wikipedia = f"{data}/wikipedia/{{version}}/{{pair}}.txt"  # .gz, .json
        self.unit = f"{data}/evalsets/{{evalset}}/{{version}}/{manifest_name('{unit}')}"
        self.eval_keys = f"{results}/text/evalkeys.tsv"
        self.held_keys = f"{results}/text/heldkeys.tsv"
        self.clean = f"{results}/text/clean/{pair}.tsv"
        self.clean_report = f"{results}/text/clean/{pair}.json"
        self.segmented = f"{results}/text/segmented/{pair}.tsv"
        self.multiway_pairs = f"{results}/text/segmented/{through}"  # all language pairs in one job
        self.multiway_reports = f"{results}/text/clean/{through}"
        self.decontamination = f"{results}/reports/decontamination.json"
        self.sample = f"{results}/vocab/{{vocabulary}}/sample"  # .txt, .languages
        self.vocabulary = f"{results}/vocab/{{vocabulary}}/vocabulary.model"
        self.vocabulary_report = f"{results}/reports/vocabulary/{{vocabulary}}.json"
        self.shard = f"{results}/shards/{{vocabulary}}/{pair}"
        self.multiway_shards = f"{results}/shards/{{vocabulary}}/{through}"
        self.index = f"{results}/shards/{{vocabulary}}/index.json"
        self.model = f"{results}/models/{{system}}"
        self.model_json = f"{self.model}/model.json"
        self.mined_pairs = f"{self.model}/mined"
        self.scores = f"{results}/scores/{{system}}/{{benchmark}}.json"
        self.export = f"{results}/exports/{{system}}/README.md"

    def _name_systems(self) -> None:
        experiment, systems = self.experiment, self.experiment.systems
        self.trained = [name for name, system in systems.items() if system.trained]
        self.fitted = [name for name, system in systems.items() if system.fitted]
        self.on_nodes = [  # that several machines share
            name
            for name in self.trained
            if self.site.nodes > 1 and systems[name].train.device != "cpu"
            if systems[name].train.steps
        ]
        self.on_one = [name for name in self.trained if name not in self.on_nodes]
        tabled = [systems[name] for name in experiment.tabled]  # others are made when asked for
        self.vocabularies = list(
            dict.fromkeys(system.vocabulary for system in tabled if system.trained or system.of)
        )
        export = experiment.export
        flags = [flag for flag in ("onnx", "int8", "without_segmenters") if getattr(export, flag)]
        self.export_flags = [f"--{flag.replace('_', '-')}" for flag in flags]
        self.export_flags += ["--dimensions", str(export.dimensions)] if export.dimensions else []

    def _name_targets(self) -> None:
        experiment, results = self.experiment, self.results
        self.outputs = outputs_of(experiment)
        self.tables = made_of(self.outputs["table"], experiment)  # the sources of each
        self.figures = made_of(self.outputs["figure"], experiment)
        self.timed = made_of(self.outputs["timed"], experiment)
        self.timed_tables = [name for name in self.timed if name in self.tables]
        self.timed_figures = [name for name in self.timed if name not in self.tables]
        self.table_names = [name for name in self.tables if name not in ASKED]
        shown = [f"tables/{table}.tex" for table in self.table_names]
        shown += [f"figures/{figure}.svg" for figure in self.figures]
        self.selected_targets = [f"results/{path}" for path in shown]
        self.table_targets = [
            *(f"{results}/{path}" for path in shown),
            f"{results}/metrics/scores.json",
            f"{self.costs}/summary/costs.tex",
            *(f"{self.costs}/summary/{name}.tex" for name in self.timed_tables),
            *(f"{self.costs}/summary/{name}.svg" for name in self.timed_figures),
        ]
        made = [name for name in experiment.tabled if name in self.trained + self.fitted]
        self.model_targets = [self.model_json.format(system=name) for name in made]
        self.evalset_targets = [
            file for name in experiment.evalsets for file in self.evalset_files(name)
        ]
        self.data_targets = [*self._archives(), *self.evalset_targets]
        self.text_targets = [
            self.decontamination,
            *(
                pattern.format(vocabulary=name)
                for pattern in (self.index, self.vocabulary_report)
                for name in self.vocabularies
            ),
        ]
        self.export_targets = [
            self.export.format(system=name) for name in experiment.export.systems
        ]

    def _archives(self) -> list[str]:
        """Return the files to download for corpora, each once: parts of a corpus share theirs."""
        archives = [
            file
            for _, corpus in self.experiment.all_corpora()
            for pair in corpus.pairs
            for file in self.archives(corpus, pair)
        ]
        return list(dict.fromkeys(archives))

    # --- the start of Snakemake

    def prepare(self) -> None:
        """Set up this process and the environment of its jobs; then refuse a run that cannot work.

        Raises `EmsError` for files from the future, and for a cluster that takes no jobs.
        """
        look_rarely()
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # Slurm's warning is for the trainer in a job
        os.environ[VARIABLE] = str(os.getpid())  # a job stops when this process is gone
        # not in `params:`, where a changed value would train again what is finished
        os.environ[AFRESH] = "1" if self.site.afresh else ""
        if self.main:  # what another Snakemake fetches from now on is not fetched again
            os.environ[PLANNED] = str(self.read_at)
        if self.starts:
            check_times(self.results, self.data)
        if self.starts and self.on_cluster:
            check_cluster(self.plan)
            if not self.dry_run:
                check_queue()
        if self.starts and not self.dry_run and not is_locked():
            made = Made(self.name)
            made.restore()
            made.save({})

    def changes(self, jobs: Iterable[Any]) -> list[str]:
        """Return a line for each setting and source for whose change some of the jobs run."""
        return Made(self.name).changes(jobs, self.settings) if self.starts else []

    def keep_records(self) -> None:
        """Write beside the outputs what they were made from, at the end of a run."""
        if self.starts:
            Made(self.name).save(self.settings)

    @property
    def warnings(self) -> list[str]:
        """A line for each segmenter that is missing here, though jobs elsewhere may have it."""
        missing = self.plan.missing if self.main else ()
        return [f"not on this machine, needed where segment jobs run: {line}" for line in missing]

    @property
    def constraints(self) -> dict[str, str]:
        """The pattern of each wildcard."""
        usable = [
            name for name in benchmarks() if set(sets_of(name)) <= set(self.experiment.evalsets)
        ]
        return {
            **dict.fromkeys(("corpus", "file", "version", "unit"), NAME),
            "label": LABEL,
            "pair": f"{CODE}(-{CODE})?",  # one language of documents
            "packed": r"(\.gz)?",
            "evalset": "[a-z0-9]+",
            "vocabulary": one_of(self.experiment.vocabularies),
            "system": one_of(self.experiment.systems),
            "benchmark": one_of(usable),
            "table": one_of(self.tables),
            "figure": one_of(self.figures),
        }

    # --- logs and params of all rules

    def logs(self, log: str, costs: str) -> dict[str, str]:
        """Return the log and the costs of a job, below their folders. Costs are logs, too: outputs
        would be made again if they were missing.
        """
        return {"log": f"{self.logs_folder}/{log}.log", "costs": f"{self.costs}/{costs}.json"}

    def stage(
        self, name: str, modules: Iterable[str] | Callable[..., Iterable[str]], reads: str = ""
    ) -> dict[str, Callable[..., Any]]:
        """Return the params of a rule: the settings that its calls name, the hash of their code.

        `name` is the stage whose settings a job reads, those of the wildcards in `reads`;
        `modules` are what a job runs, or a function of its wildcards that returns them.
        """

        def settings(wildcards: Wildcards) -> list[str]:
            parts = {key: wildcards[key] for key in reads.split()}
            read = stage_settings(self.experiment, name, **parts)
            self.settings[expect := digest(read)] = read
            return ["--experiment", self.name, "--expect", expect]

        def code(wildcards: Wildcards) -> str:
            return source_of(modules(wildcards) if callable(modules) else modules)

        return {"settings": settings, "code": code}

    # --- corpora

    def archives(self, corpus: Corpus, pair: str) -> list[str]:
        """Return the archives that hold a pair of a corpus, or the documents of one language."""
        if corpus.documents:
            return [str(text_file(corpus, name, Path(self.data))) for name in corpus.files(pair)]
        if corpus.paths:
            return list(map(str, own_files(corpus, pair)))
        pattern = self.mined if corpus.mined else self.archive
        return [
            pattern.format(corpus=corpus.name, version=corpus.version, pair=name)
            for name in corpus.files(pair)
        ]

    def _require(self, files: Iterable[str]) -> None:
        """Raise `EmsError` with all that the sources lack if it has one of these files."""
        if self.starts and set(map(Path, files)) & self.plan.sources.files:
            raise EmsError(self.plan.sources)

    def from_source(self, pattern: str) -> Callable[..., list[str]]:
        """Return an input function that finds nothing; it raises if the source lacks the file."""

        def value(wildcards: Wildcards) -> list[str]:
            self._require([pattern.format(**wildcards)])
            return []

        return value

    def opus_source(self, wildcards: Wildcards) -> str:
        """Return where a corpus comes from: its own source, or the one for OPUS corpora."""
        for _, corpus in self.experiment.all_corpora():
            if (corpus.name, corpus.version) == (wildcards.corpus, wildcards.version):
                kind = "documents" if corpus.documents else "opus"
                embedded = f"{Path(self.mirror).parent}/{kind}"
                return embedded if corpus.source == EMBEDDED else corpus.source
        return self.experiment.sources["opus"]

    def embedded_opus(self, wildcards: Wildcards) -> list[str]:
        """Return the demo's data as an input, for corpora and documents that come from it."""
        embedded = Path(self.opus_source(wildcards)).parent == Path(self.mirror).parent
        return [self.mirror] if embedded else []

    def embedded_unit(self, wildcards: Wildcards) -> list[str]:
        """Return the demo's data as an input, for evaluation sets that come from it."""
        return [self.mirror] if self.unit_source(wildcards) == EMBEDDED else []

    def fetch_flags(self, *words: str) -> Callable[..., list[str]]:
        """Return a params function: these flags, and one for data that ems itself has written."""
        return lambda wildcards, input: [*words, *(["--generated"] if input else [])]

    @property
    def demo_code(self) -> str:
        return source_of(demo_modules())

    def language_of_wiki(self, wildcards: Wildcards) -> str:
        """Return the language of a Wikipedia as a corpus of the experiment names it."""
        for _, corpus in self.experiment.all_corpora():
            for language in corpus.pairs if corpus.dumped else ():
                if wildcards.pair in corpus.files(language):
                    return language
        return wildcards.pair

    # --- evaluation sets

    @property
    def against(self) -> list[str]:
        """The sets whose sentences training must not see."""
        return list(self.experiment.decontaminate.against)

    def evalset_folder(self, name: str) -> str:
        """Return where a set lies: the user's copy, the demo's, among the corpora, or by itself."""
        return str(default_folder(self.experiment, name, Path(self.data)))

    def evalset_folders(self, names: Iterable[str]) -> list[str]:
        return [f"{name}={self.evalset_folder(name)}" for name in names]

    def evalset_files(self, *names: str) -> list[str]:
        """Return the files of sets that jobs wait for: manifests, or files used in place; none of a
        set that the experiment does not use.
        """
        files = []
        for name in names:
            evalset = self.experiment.evalsets.get(name)
            if evalset and evalset.embedded:
                files.append(self.mirror)
            elif evalset:
                folder = Path(self.evalset_folder(name))
                files += map(str, fetched_files(self.experiment, name, folder))
        return files

    def unit_source(self, wildcards: Wildcards) -> str:
        """Return where a set comes from: a directory, an address, `embedded`, '': as published."""
        return unit_source(self.experiment, wildcards.evalset)

    def evalkeys_modules(self, wildcards: Wildcards) -> list[str]:
        return evalkeys_modules(self.against)

    # --- text

    def per_pair(self, pattern: str, *roles: str) -> Callable[..., list[str]]:
        """Return an input function: the pattern for every pair with a role ("train", "validation")
        of a job's vocabulary.
        """

        def value(wildcards: Wildcards) -> list[str]:
            vocabulary = wildcards.get("vocabulary", SHARED)
            pairs = [pair for role in roles for pair in self.experiment.pairs_of(role, vocabulary)]
            return _of_pairs(pattern, pairs, vocabulary=vocabulary)

        return value

    def archives_of(self, wildcards: Wildcards) -> list[str]:
        """Return the archives that hold a pair of a corpus or of a part of it."""
        _, corpus = self.experiment.corpus(wildcards.label, wildcards.version)
        files = self.archives(corpus, wildcards.pair)
        self._require(files)  # of the user's own folder, which no rule fetches
        return files

    def documents_of(self, wildcards: Wildcards) -> str | list[str]:
        """Return the file that says which document each line is of, for a divided corpus."""
        _, corpus = self.experiment.corpus(wildcards.label, wildcards.version)
        split = self.experiment.splits.get(corpus.name)
        if corpus.documents or not corpus.part or not split.documents:
            return []
        release = {"corpus": corpus.name, "version": corpus.version}
        return self.documents.format(**release, file=split.documents)

    def held_out_of(self, wildcards: Wildcards) -> str | list[str]:
        """Return the sentences of the validation text, which a training corpus must not hold."""
        role, _ = self.experiment.corpus(wildcards.label, wildcards.version)
        held_out = role == "train" and self.experiment.decontaminate.validation
        return self.held_keys if held_out else []

    def earlier_of(self, wildcards: Wildcards) -> list[str]:
        """Return the clean pairs that a corpus must not repeat, with `clean.duplicates: across`."""
        pair = wildcards.pair
        corpora = self.experiment.before(wildcards.label, wildcards.version, pair)
        return _of_pairs(self.clean, [(corpus, pair) for corpus in corpora])

    def text_group(self, wildcards: Wildcards) -> str:
        """Return the group of a pair's jobs: those of training may wait for all of validation, and
        so share no job with them.
        """
        role, _ = self.experiment.corpus(wildcards.label, wildcards.version)
        return "text" if role == "train" else "validation"

    @property
    def validation_pairs(self) -> list[str]:
        corpora = self.experiment.validation
        return _of_pairs(
            self.clean, [(corpus, pair) for corpus in corpora for pair in corpus.pairs]
        )

    @property
    def joined_pairs(self) -> list[str]:
        """The pairs that share a translation."""
        return _of_pairs(self.segmented, self.experiment.joined())

    @property
    def joined_reports(self) -> str | list[str]:
        return self.multiway_reports if self.experiment.multiway.through else []

    def segment_modules(self, wildcards: Wildcards) -> list[str]:
        return segment_modules(self.experiment, wildcards.pair)

    # --- vocabularies and shards

    def joined_shards(self, wildcards: Wildcards) -> str | list[str]:
        joined = self.experiment.multiway_pairs(wildcards.vocabulary)
        return self.multiway_shards if joined else []

    def languages_of(self, wildcards: Wildcards) -> list[str]:
        return self.experiment.vocabularies[wildcards.vocabulary].languages

    # --- systems

    def _system(self, wildcards: Wildcards) -> SystemSettings:
        return self.experiment.systems[wildcards.system]

    def of_system(self, pattern: str) -> Callable[..., str]:
        """Return an input function: the pattern for the vocabulary of a job's system."""
        return lambda wildcards: pattern.format(vocabulary=self._system(wildcards).vocabulary)

    def start_of(self, wildcards: Wildcards) -> str | list[str]:
        """Return the model that a training starts from; nothing for start values of its own."""
        start = self._system(wildcards).train.start_from
        return self.model_json.format(system=start) if start else []

    def mined_of(self, wildcards: Wildcards) -> str | list[str]:
        """Return the mined pairs that a system learns from, if it does."""
        learns = self._system(wildcards).objectives.coherence.weight
        return f"{self.mined_pairs}/manifest.json" if learns else []

    def part_of(self, wildcards: Wildcards) -> str | list[str]:
        """Return the trained model in a fused system; nothing for another one."""
        trained = self._system(wildcards).of
        return self.model_json.format(system=trained) if trained else []

    def fitted_on(self, role: str) -> Callable[..., list[str]]:
        """Return an input function: the clean text of a role that a job's system is fitted on."""
        return lambda wildcards: _of_pairs(
            self.clean, self.experiment.fitted_on(role, wildcards.system)
        )

    def threads(self, wildcards: Wildcards) -> int:
        return self._system(wildcards).train.threads

    def fit_threads(self, wildcards: Wildcards) -> int:
        return self.threads(wildcards) if self.part_of(wildcards) else 1

    def cpus(self, wildcards: Wildcards) -> int:
        """Return the CPUs that train a system on a machine, of all its processes together."""
        return self.threads(wildcards) * max(1, self.gpus(wildcards))

    def gpus(self, wildcards: Wildcards) -> int:
        """Return the GPUs that train a system on a machine: none where it is trained on CPUs."""
        return 0 if self._system(wildcards).train.device == "cpu" else self.site.gpus

    def one_gpu(self, wildcards: Wildcards) -> int:
        """Return one GPU to encode with, where there are any, unless the system is trained on CPUs
        or has no use for it.
        """
        useless = self._system(wildcards).kind == "char-ngram"
        return 0 if useless else min(1, self.gpus(wildcards))

    @property
    def train_retries(self) -> int:
        """A node that is taken away ends an attempt; the next one resumes."""
        return 10 if self.on_cluster else 0

    def train_resources(self, on_nodes: bool = False) -> dict[str, Any]:
        """Return what a training asks for, on one machine or on all nodes in one step of Slurm."""
        gpus, nodes = self.site.gpus, self.site.nodes
        alike = {
            "cpus_per_task": self.cpus,  # Snakemake cuts `threads` to the cores of its own machine
            # most further attempts resume what was stopped, and need no more memory
            "mem_mb": lambda wildcards, attempt: 8000 * (1 + attempt // 4),
            "runtime": 2880,
            # Slurm warns two minutes before the time is over: it saves, and is submitted again
            "slurm_extra": "--signal=USR1@120",
        }
        if not on_nodes:
            return {**alike, "gpu": self.gpus, "nodes": 1, "processes": self.gpus}
        return {
            **alike,
            **({"gres": f"gpu:{gpus}"} if gpus else {}),
            **{"nodes": nodes, "processes": gpus},
            "mpi": "srun",  # the command starts its step itself
            "tasks": nodes,  # with more, Slurm could give one node most of the CPUs
            "tasks_per_gpu": 0,  # said by the line above
        }

    # --- benchmarks

    def model_of(self, wildcards: Wildcards) -> str | list[str]:
        """Return the model of a system, or the local files of an external one."""
        if wildcards.system in self.trained + self.fitted:
            return self.model_json
        return model_files(self._system(wildcards))

    def model_flag(self, wildcards: Wildcards) -> list[str]:
        """Return `--model FOLDER` for a system that has one here."""
        here = wildcards.system in self.trained + self.fitted
        return ["--model", self.model.format(system=wildcards.system)] if here else []

    def bench_files(self, wildcards: Wildcards) -> list[str]:
        return self.evalset_files(*sets_of(wildcards.benchmark))

    def bench_folders(self, wildcards: Wildcards) -> list[str]:
        return self.evalset_folders(sets_of(wildcards.benchmark))

    def bench_modules(self, wildcards: Wildcards) -> list[str]:
        return bench_modules(wildcards.benchmark, self._system(wildcards).kind)

    def bench_group(self, wildcards: Wildcards) -> str:
        """Return the group of a job; four jobs with a GPU together would ask for four GPUs."""
        return "bench_on_gpu" if self.one_gpu(wildcards) else "bench"

    def bench_minutes(self, wildcards: Wildcards) -> int:
        return 60 * benchmark(wildcards.benchmark).hours

    # --- tables

    @property
    def all_scores(self) -> list[str]:
        names = self.experiment.benchmarks
        return [path for name in names for path in scores(self.experiment, name)]

    @property
    def losses(self) -> list[str]:
        systems = [name for name in self.experiment.tabled if name in self.trained]
        return [f"{self.model}/losses.jsonl".format(system=name) for name in systems]

    @property
    def scores_of_system(self) -> list[str]:
        """The scores of all benchmarks, as patterns of a system."""
        folder = f"{self.results}/scores/{{system}}"
        return [f"{folder}/{name}.json" for name in self.experiment.benchmarks]

    @property
    def captions(self) -> list[str]:
        return captions(self.experiment, self.table_names)

    def sources(self, wildcards: Wildcards) -> list[str]:
        """Return the files that a table or figure is made of."""
        made = {"table": self.tables, "figure": self.figures, "timed": self.timed}
        ((kind, name),) = wildcards.items()
        return made[kind][name]

    def times(self, wildcards: Wildcards) -> list[str]:
        return times_of(self.experiment, self.sources(wildcards))

    def table_modules(self, wildcards: Wildcards) -> list[str]:
        return table_modules(wildcards.table, self.experiment)

    def figure_modules(self, wildcards: Wildcards) -> list[str]:
        return figure_modules(wildcards.figure, self.experiment)

    def report(self, wildcards: Wildcards) -> str:
        """Return what `snakemake --report` says of a table or figure."""
        ((kind, name),) = wildcards.items()
        return self.outputs[kind][name].shown.report

    def figure_label(self, wildcards: Wildcards) -> dict[str, str]:
        """Return the caption of a figure, as the label of `snakemake --report`."""
        ((kind, name),) = wildcards.items()
        return {"figure": self.outputs[kind][name].shown.caption}

    def pdf_tables(self, wildcards: Wildcards) -> list[str]:
        """Return the tables of the PDF. Raises `EmsError` if LaTeX is not here."""
        check_latex()
        return [f"{self.results}/tables/{table}.tex" for table in self.table_names]


def _of_pairs(pattern: str, pairs: Iterable[tuple[Corpus, str]], **others: str) -> list[str]:
    """Return a pattern with the names of each corpus and language pair."""
    return [
        pattern.format(label=corpus.label, version=corpus.version, pair=pair, **others)
        for corpus, pair in pairs
    ]
