"""Inputs, params and resources of each job of the workflow, and the modules that it runs.

Snakemake calls each method with `wildcards` when it plans a job, and passes other arguments
(`input`, `threads`, `attempt`) by name. The hash of the modules' source is in the params of a rule.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.base.provenance import digest
from ems.bench import encoders
from ems.config.corpora import host_of
from ems.config.corpus_entries import TranslatedDocuments
from ems.config.experiment import EMBEDDED, Corpus, Experiment, pairs_of_part
from ems.config.plugins import benchmark, benchmarks, has_module, module_name, score_module, sets_of
from ems.config.systems import SHARED, SystemSettings
from ems.corpora.evalsets.sets import manifest_name, unit_source, units_of
from ems.tables.declarations import words_of
from ems.tables.pdf import check_latex
from ems.tables.registry import times_of
from ems.text.segmenters.base import module_name as segmenter_module
from ems.workflow.rules import Wildcards, Workflow, of_pairs, source_of


def per_attempt(per_thread: int = 0, **resources: int) -> dict[str, Callable[..., int]]:
    """Return functions of resources that grow with each attempt, `mem_mb` also per thread."""

    def grow(name: str, base: int) -> Callable[..., int]:
        more = per_thread if name == "mem_mb" else 0
        return lambda wildcards, threads, attempt: (base + more * threads) * attempt

    return {name: grow(name, base) for name, base in resources.items()}


def options(*names: str, folders: bool = False) -> Callable[..., list[str]]:
    """Return a params function: `--name FILE ...`, or its folder, for each of a job's inputs."""

    def words(wildcards: Wildcards, input: Any) -> list[str]:
        flags = []
        for name in names:
            files = [input[name]] if isinstance(input[name], str) else input[name]
            if files:
                values = [str(Path(files[0]).parent)] if folders else files
                flags += [f"--{name.replace('_', '-')}", *values]
        return flags

    return words


class Jobs:
    """The inputs, params and resources of an experiment's jobs, for the rules."""

    def __init__(self, workflow: Workflow) -> None:
        self.w = workflow
        self.experiment, self.site = workflow.experiment, workflow.site
        # language pairs of a role in the languages of a vocabulary
        self.narrowed: dict[tuple[str, str], set[tuple[str, str, str]]] = {}

    # --- corpora and evaluation sets

    def _require(self, *files: str) -> list[str]:
        """Return []. Raises `EmsError` with all missing source files if one of these is missing."""
        if self.w.starts and set(map(Path, files)) & self.w.plan.sources.files:
            raise EmsError(self.w.plan.sources)
        return []

    def from_source(self, pattern: str) -> Callable[..., list[str]]:
        """Return an input function that adds no input, but raises if the source lacks the file."""
        return lambda wildcards: self._require(pattern.format(**wildcards))

    def files(self, wildcards: Wildcards) -> list[str]:
        """Return the paths of the files of a corpus that a job fetches."""
        receipt = self.w.fetched.format(**wildcards)
        return [path for path, each in self.w.receipts.items() if each == receipt]

    def fetched_from(self, wildcards: Wildcards) -> list[str]:
        """Return the demo's data for its corpora. Raises `EmsError` if a source lacks a file."""
        self._require(*self.files(wildcards))
        embedded = Path(self.opus_source(wildcards)).parent == Path(self.w.mirror).parent
        return [self.w.mirror] if embedded else []

    def fetch_flags(self, wildcards: Wildcards, input: Any) -> list[str]:
        """Return the names of the files of a corpus, their format, and their place."""
        form, paths = wildcards.form, list(map(Path, self.files(wildcards)))
        before = f"{wildcards.corpus}." if form == "mined" else ""
        names = [path.name.removeprefix(before).partition(".")[0] for path in paths]
        place = paths[0].with_name(paths[0].name.replace(names[0], "{pair}", 1))
        flags = ["--pair", *names, "--format", "text" if form.startswith("txt") else form]
        accepted = [corpus.accept for corpus in self._of_release(wildcards) if corpus.accept]
        flags += [f"--accept={accept}" for accept in accepted[:1]]
        return [*flags, "--out", str(place), *(["--generated"] if input else [])]

    def _of_release(self, wildcards: Wildcards) -> list[Corpus]:
        """Return the corpora of a release: one, or its parts, also of both roles."""
        named = (wildcards.corpus, wildcards.version)
        return [c for _, c in self.experiment.all_corpora() if (c.name, c.version) == named]

    def opus_source(self, wildcards: Wildcards) -> str:
        """Return the source of a corpus: its own, or the one for OPUS corpora."""
        if not (corpora := self._of_release(wildcards)):
            return self.experiment.sources[host_of(wildcards.corpus, self.experiment.sources)]
        kind, source = "documents" if corpora[0].documents else "opus", corpora[0].source
        return f"{Path(self.w.mirror).parent}/{kind}" if source == EMBEDDED else source

    def unit_source(self, wildcards: Wildcards) -> str:
        """Return the source of a set: a directory, a URL, "embedded", or "" (as published)."""
        return unit_source(self.experiment, wildcards.evalset)

    def embedded_unit(self, wildcards: Wildcards) -> list[str]:
        """Return the demo's data as an input for the demo's evaluation sets."""
        return [self.w.mirror] if self.unit_source(wildcards) == EMBEDDED else []

    def units(self, wildcards: Wildcards) -> list[str]:
        """Return the units of a set. Raises `EmsError` if a source lacks one."""
        folder = Path(self.w.data, "evalsets", wildcards.evalset, wildcards.version)
        units = units_of(self.experiment, wildcards.evalset)
        self._require(*(str(folder / manifest_name(unit)) for unit in units))
        return units

    def language_of_wiki(self, wildcards: Wildcards) -> str:
        """Return the experiment's code for the language of a Wikipedia."""
        wiki = wildcards.pair
        dumped = [corpus for _, corpus in self.experiment.all_corpora() if corpus.dumped]
        named = (code for each in dumped for code in each.pairs if wiki in each.files(code))
        return next(named, wiki)

    # --- text and shards

    def _pairs(self, roles: Iterable[str], wildcards: Wildcards) -> list[tuple[Corpus, str]]:
        vocabulary = wildcards.get("vocabulary", SHARED)
        return [pair for role in roles for pair in self.experiment.pairs_of(role, vocabulary)]

    def per_pair(self, pattern: str, *roles: str) -> Callable[..., list[str]]:
        """Return a params function: the pattern for each language pair with one of the `roles`."""
        return lambda wildcards: of_pairs(pattern, self._pairs(roles, wildcards), **wildcards)

    def per_part(self, pattern: str, *roles: str) -> Callable[..., list[str]]:
        """Return an input function: the pattern for each part with pairs of these `roles`."""
        pairs = partial(self._pairs, roles)
        return lambda wildcards: self.w.parts_with(pattern, pairs(wildcards), **wildcards)

    def _corpus(self, wildcards: Wildcards) -> tuple[str, Corpus]:
        return self.experiment.corpus(wildcards.label, wildcards.version)

    def pairs(self, wildcards: Wildcards) -> list[str]:
        """Return the language pairs of a part; of a vocabulary, those in its languages."""
        role, corpus = self._corpus(wildcards)
        pairs = pairs_of_part(corpus, wildcards.part)
        if not (vocabulary := wildcards.get("vocabulary")):
            return pairs
        if (role, vocabulary) not in self.narrowed:
            own = {(c.label, c.version, pair) for c, pair in self._pairs([role], wildcards)}
            self.narrowed[role, vocabulary] = own
        own = self.narrowed[role, vocabulary]
        return [pair for pair in pairs if (corpus.label, corpus.version, pair) in own]

    def archives(self, wildcards: Wildcards) -> list[str]:
        """Return the receipts of a part's downloads, or the user's own files."""
        files = self.w.fetched_of(self._corpus(wildcards)[1], self.pairs(wildcards))
        self._require(*files)  # no rule fetches files of the user's own
        return files

    def _aligned(self, wildcards: Wildcards) -> TranslatedDocuments:
        return next(each.aligned for each in self._of_release(wildcards) if each.aligned)

    def translated(self, wildcards: Wildcards) -> str:
        """Return a hash of the names and times of the documents of a language pair."""
        from ems.use.aligned import listed  # imported late: it loads numpy

        rows = listed(Path(self._aligned(wildcards).folder), wildcards.pair.split("-"))
        return digest([row.hex() for row in rows])

    def align_flags(self, wildcards: Wildcards) -> list[str]:
        documents, (source, target) = self._aligned(wildcards), wildcards.pair.split("-")
        flags = ["--documents", documents.folder, "--threshold", str(documents.threshold)]
        flags += ["--source-language", source, "--target-language", target]
        flags += ["--split"] if documents.split else []
        return flags + (["--model", documents.model] if documents.model else [])

    def documents(self, wildcards: Wildcards) -> str | list[str]:
        """Return the file with the document of each line, for a divided corpus."""
        _, corpus = self._corpus(wildcards)
        if not (file := self.experiment.document_names(corpus)):
            return []
        return self.w.documents.format(corpus=corpus.name, version=corpus.version, file=file)

    def held_out(self, wildcards: Wildcards) -> str | list[str]:
        """Return the keys of the validation text, which a training corpus must not contain."""
        role, _ = self._corpus(wildcards)
        held_out = role == "train" and self.experiment.decontaminate.validation
        return self.w.held_keys if held_out else []

    def earlier(self, wildcards: Wildcards) -> list[str]:
        """Return the parts of preceding corpora whose pairs this one must not repeat."""
        before, place = self.experiment.before, (wildcards.label, wildcards.version)
        pairs = [(each, pair) for pair in self.pairs(wildcards) for each in before(*place, pair)]
        return self.w.parts_with(self.w.part, pairs)

    def prepare_modules(self, wildcards: Wildcards) -> list[str]:
        return prepare_modules(self.experiment, self.pairs(wildcards))

    def sharded(self, wildcards: Wildcards) -> list[str]:
        """Return the pair files of a part in the languages of a vocabulary."""
        corpus = self._corpus(wildcards)[1]
        return of_pairs(self.w.segmented, [(corpus, pair) for pair in self.pairs(wildcards)])

    def joined_shards(self, wildcards: Wildcards) -> str | list[str]:
        joined = self.experiment.multiway_pairs(wildcards.vocabulary)
        return self.w.multiway_shards if joined else []

    def languages(self, wildcards: Wildcards) -> list[str]:
        return self.experiment.vocabularies[wildcards.vocabulary].languages

    # --- systems

    def _system(self, wildcards: Wildcards) -> SystemSettings:
        return self.experiment.systems[wildcards.system]

    def of_system(self, pattern: str) -> Callable[..., str]:
        """Return an input function: the pattern for the vocabulary of a job's system."""
        return lambda wildcards: pattern.format(vocabulary=self._system(wildcards).vocabulary)

    def _model(self, system: str) -> str | list[str]:
        return self.w.model_json.format(system=system) if system else []

    def start(self, wildcards: Wildcards) -> str | list[str]:
        """Return the model that a training starts from, [] for random weights."""
        return self._model(self._system(wildcards).train.start_from)

    def mined(self, wildcards: Wildcards) -> str | list[str]:
        """Return the manifest of mined pairs, [] if the system does not learn from them."""
        learns = self._system(wildcards).objectives.coherence.weight
        return f"{self.w.mined_pairs}/manifest.json" if learns else []

    def part(self, wildcards: Wildcards) -> str | list[str]:
        """Return the trained model in a fused system, [] for other systems."""
        return self._model(self._system(wildcards).base_system)

    def fitted_on(self, wildcards: Wildcards) -> list[str]:
        """Return the parts with clean text that a system is fitted on."""
        roles = ("train", "validation")
        pairs = [p for role in roles for p in self.experiment.fitted_on(role, wildcards.system)]
        return self.w.parts_with(self.w.part, pairs)

    def fit_flags(self, wildcards: Wildcards) -> list[str]:
        flags = []
        for flag, role in (("--text", "train"), ("--pairs", "validation")):
            pairs = self.experiment.fitted_on(role, wildcards.system)
            flags += [flag, *of_pairs(self.w.clean, pairs)] if pairs else []
        return flags

    def threads(self, wildcards: Wildcards) -> int:
        return self._system(wildcards).train.threads

    def fit_threads(self, wildcards: Wildcards) -> int:
        return self.threads(wildcards) if self._system(wildcards).base_system else 1

    def cpus(self, wildcards: Wildcards) -> int:
        """Return the CPUs of all training processes on a machine."""
        return self.threads(wildcards) * max(1, self.gpus(wildcards))

    def gpus(self, wildcards: Wildcards) -> int:
        return 0 if self._system(wildcards).train.device == "cpu" else self.site.gpus

    def one_gpu(self, wildcards: Wildcards) -> int:
        """Return 1 if there is a GPU that the system can encode with, else 0."""
        return 0 if self._system(wildcards).kind == "char-ngram" else min(1, self.gpus(wildcards))

    # --- benchmarks

    def _has_folder(self, wildcards: Wildcards) -> bool:
        return wildcards.system in self.w.trained + self.w.fitted

    def model(self, wildcards: Wildcards) -> str | list[str]:
        """Return the model of a system, or the local files of an external one."""
        own = self._has_folder(wildcards)
        return self.w.model_json if own else encoders.model_files(self._system(wildcards))

    def model_flag(self, wildcards: Wildcards) -> list[str]:
        folder = self.w.model.format(system=wildcards.system)
        return ["--model", folder] if self._has_folder(wildcards) else []

    def bench_files(self, wildcards: Wildcards) -> list[str]:
        return self.w.evalset_files(*sets_of(wildcards.benchmark))

    def bench_folders(self, wildcards: Wildcards) -> list[str]:
        return self.w.evalset_folders(sets_of(wildcards.benchmark))

    def bench_modules(self, wildcards: Wildcards) -> list[str]:
        return bench_modules(wildcards.benchmark, self._system(wildcards).kind)

    def bench_group(self, wildcards: Wildcards) -> str:
        """Keep jobs with a GPU apart: a group of four would request four GPUs."""
        return "bench_on_gpu" if self.one_gpu(wildcards) else "bench"

    def bench_minutes(self, wildcards: Wildcards) -> int:
        return 60 * benchmark(wildcards.benchmark).hours

    def examples_modules(self) -> list[str]:
        """Return the modules that find examples: data of the sets, and all encoders in use."""
        kinds = {system.kind for system in self.experiment.systems.values()}
        data = [module_name(name, "data") for name in self.experiment.evalsets]
        return ["ems.bench.examples", *data, *(encoders.MODULES[kind] for kind in sorted(kinds))]

    # --- tables

    def _output(self, wildcards: Wildcards) -> tuple[str, str]:
        """Return the kind ("table", "figure", "timed") and the name of a job's output."""
        ((kind, name),) = wildcards.items()
        return kind, name

    def sources(self, wildcards: Wildcards) -> list[str]:
        kind, name = self._output(wildcards)
        return self.w.input_files[kind][name]

    def times(self, wildcards: Wildcards) -> list[str]:
        return times_of(self.experiment, self.sources(wildcards))

    def table_modules(self, wildcards: Wildcards) -> list[str]:
        return table_modules(self._output(wildcards)[1], self.experiment)

    def pdf_tables(self, wildcards: Wildcards) -> list[str]:
        """Return the tables of the PDF. Raises `EmsError` if LaTeX is not installed."""
        check_latex()
        return [f"{self.w.results}/tables/{table}.tex" for table in self.w.table_names]


# --- the modules of a job


def demo_modules() -> list[str]:
    """Return the modules that write the demo's mirror: corpus and data of each benchmark."""
    made = [module_name(name, "demo") for name in benchmarks() if has_module(name, "demo")]
    return ["ems.corpora.demo", *made]


def demo_source() -> str:
    """Return a hash of the source and the language codes that the demo's mirror is made from."""
    records = benchmarks().items()
    codes = {name: record.codes for name, record in records if has_module(name, "demo")}
    return source_of(demo_modules()) + digest(codes)


def evalkeys_modules(against: Iterable[str]) -> list[str]:
    return ["ems.text.evalkeys", *(module_name(name, "data") for name in against)]


def prepare_modules(experiment: Experiment, pairs: Iterable[str]) -> list[str]:
    """Return the modules that prepare language pairs, with their segmenters and repairs."""
    names = {experiment.segmenters[code] for pair in pairs for code in pair.split("-")}
    repairs = ["ems.text.repairs"] * (experiment.clean.repairs != "none")
    return ["ems.text.prepare", *map(segmenter_module, sorted(names)), *repairs]


def bench_modules(name: str, kind: str) -> list[str]:
    """Return the modules that score a system of this kind: protocol, data and encoder."""
    own = [module_name(name, "score")] if has_module(name, "score") else []
    data = [module_name(each, "data") for each in sets_of(name)]
    return [score_module(name), *own, *data, encoders.MODULES[kind]]


def table_modules(table: str, experiment: Experiment | None = None) -> list[str]:
    """Return the modules that write a table or figure: the engine and the benchmarks' own."""
    records = benchmarks().items()
    shown = {name: {*record.joins, *chain(*words_of(name).values())} for name, record in records}
    owners = [name for name, tables in shown.items() if table in tables]
    studies = (experiment and experiment.tables.studies) or {}
    owners += studies[table].columns if table in studies else []
    parts = [module_name(owner, part) for owner in owners for part in ("__init__", "table")]
    return ["ems.tables", *parts]
