# What every stage needs: the checked plan, where things lie, and the hashes for `params:`.
import os
import re
import signal
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from ems.bench.encoders import model_files
from ems.benchmarks import benchmark, benchmarks, module, sets_of
from ems.config import EMBEDDED, SHARED, stage_hash
from ems.config.names import CODE, LABEL, NAME
from ems.config.provenance import source_hash
from ems.errors import EmsError
from ems.evalsets.sets import data_files, default_folder, manifest_name, unit_source
from ems.orphan import VARIABLE
from ems.job_modules import (
    bench_modules,
    demo_modules,
    evalkeys_modules,
    figure_modules,
    segment_modules,
    source_of,
    table_modules,
)
from ems.plan import SLURM, check_cluster, plan, plans_jobs, segments_elsewhere
from ems.tables.pdf import check_latex
from ems.tables.registry import ASKED, figures, made_of, priced, scores, tables, timed
from ems.train import AFRESH

signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # Slurm's warning is for the trainer in a job
os.environ[VARIABLE] = str(os.getpid())  # a job stops when this process is gone

# Snakemake 9.27 wakes its scheduler once a second for each job that has finished, as long as another
# one waits: after a few hundred jobs more than half a core. Nothing here needs the limit behind it.
if workflow.scheduling_settings:
    workflow.scheduling_settings.max_jobs_per_timespan = None

WORDS = [*sys.argv, os.environ.get("SNAKEMAKE_PROFILE", "")]
MAIN = workflow.is_main_process  # not that of one job, which checks what it needs itself
try:
    PLAN = plan(
        config,
        elsewhere=not MAIN or segments_elsewhere(WORDS),
        jobs=MAIN and plans_jobs(WORDS),
    )
    check_cluster(WORDS, PLAN)
except EmsError as error:
    raise WorkflowError(str(error)) from None
for line in PLAN.missing if MAIN else ():
    logger.warning(f"not on this machine, needed where segment jobs run: {line}")

EXPERIMENT = PLAN.experiment
# Not in `params:`, where a changed value would train again what is finished.
os.environ[AFRESH] = "1" if PLAN.site["afresh"] else ""
ON_CLUSTER = MAIN and bool(SLURM & set(WORDS))
DATA = PLAN.site["data"]
MIRROR = f"{DATA}/{EMBEDDED}"  # where ems writes the demo's data
ARCHIVE = f"{DATA}/opus/{{corpus}}/{{version}}/moses/{{pair}}.txt.zip"
MINED = f"{DATA}/opus/{{corpus}}/{{version}}/mined/{{corpus}}.{{pair}}.tsv.gz"
DOCUMENTS = f"{DATA}/opus/{{corpus}}/{{version}}/{{file}}"
RESULTS = f"results/{EXPERIMENT.name}"
LOGS = f"{RESULTS}/logs"
COSTS = f"{RESULTS}/costs"
TRAINED = [name for name, system in EXPERIMENT.systems.items() if system["kind"] == "encoder"]
SYSTEMS = EXPERIMENT.shown  # of the tables; others are made when asked for
VOCABULARIES = list(  # of the systems that are trained for the tables
    dict.fromkeys(EXPERIMENT.systems[name]["vocabulary"] for name in SYSTEMS if name in TRAINED)
)
LEARNING = EXPERIMENT.learning(SYSTEMS)


def one_of(names):
    """The pattern of a wildcard that is one of some names."""
    return "|".join(map(re.escape, names))


wildcard_constraints:
    corpus=LABEL,
    file=NAME,
    version=NAME,
    vocabulary=one_of(EXPERIMENT.vocabularies),
    pair=f"{CODE}-{CODE}",
    code=CODE,
    evalset="[a-z0-9]+",
    unit=NAME,
    system=one_of(EXPERIMENT.systems),
    benchmark=one_of(
        name for name in benchmarks() if set(sets_of(name)) <= set(EXPERIMENT.evalsets)
    ),
    figure="[a-z_]+",
    table="[a-z_]+",


def settings_hash(stage, *names):
    """A params function: the hash of the settings that this job of `stage` reads."""

    def value(wildcards):
        return stage_hash(EXPERIMENT, stage, **{name: wildcards[name] for name in names})

    return value


def folder_of_output(wildcards, output):
    """A params function: the folder of the first output (or of the first of some files)."""
    return str(Path(output[0]).parent)


def per_pair(pattern, role, vocabulary=SHARED):
    """`pattern` for every pair of a role ("train" or "validation") of the languages of a vocabulary."""
    return [
        pattern.format(
            corpus=corpus.label, version=corpus.version, pair=pair, vocabulary=vocabulary
        )
        for corpus, pair in EXPERIMENT.pairs_of(role, vocabulary)
    ]


def of_vocabulary(pattern, role):
    """An input function: `pattern` for every pair of a role of a job's vocabulary."""

    def value(wildcards):
        return per_pair(pattern, role, wildcards.vocabulary)

    return value


def of_system(pattern):
    """An input function: `pattern` for the vocabulary of a job's system."""

    def value(wildcards):
        return pattern.format(vocabulary=EXPERIMENT.systems[wildcards.system]["vocabulary"])

    return value


def every_pair(pattern):
    """`pattern` for every pair of every corpus."""
    return per_pair(pattern, "train") + per_pair(pattern, "validation")


def corpus_of(wildcards):
    """The corpus that a job's wildcards `corpus` (its label) and `version` name."""
    return EXPERIMENT.corpus(wildcards.corpus, wildcards.version)[1]


def from_source(*patterns):
    """An input function: nothing; or, if a source lacks one of these files, an error with all that sources lack."""

    def value(wildcards):
        files = {Path(pattern.format(**wildcards)) for pattern in patterns}
        if MAIN and plans_jobs(WORDS) and files & PLAN.sources.files:
            raise WorkflowError(str(PLAN.sources))
        return []

    return value


def archives(corpus, pair):
    """The archives that hold a pair of a corpus."""
    pattern = MINED if corpus.mined else ARCHIVE
    return [
        pattern.format(corpus=corpus.name, version=corpus.version, pair=name)
        for name in corpus.files(pair)
    ]


def archives_of(wildcards):
    """The archives that hold a pair of a corpus or of a part of it."""
    return archives(corpus_of(wildcards), wildcards.pair)


def documents_of(wildcards):
    """The documents of the lines of a corpus that is divided; nothing for a whole one."""
    corpus = corpus_of(wildcards)
    split = EXPERIMENT.splits.get(corpus.name)
    if not corpus.part or not split.documents:
        return []
    return DOCUMENTS.format(corpus=corpus.name, version=corpus.version, file=split.documents)


def opus_source(wildcards):
    """Where a corpus comes from: its own source, or the one for OPUS corpora."""
    for _, corpus in EXPERIMENT.all_corpora():
        if (corpus.name, corpus.version) == (wildcards.corpus, wildcards.version):
            return f"{MIRROR}/opus" if corpus.source == EMBEDDED else corpus.source
    return EXPERIMENT.sources["opus"]


def embedded_opus(wildcards):
    """The demo mirror as an input, for corpora that come from it."""
    embedded = opus_source(wildcards) == f"{MIRROR}/opus"
    return f"{MIRROR}/manifest.json" if embedded else []


def evalset_folder(name):
    """Where an evaluation set lies: the user's copy, the demo's, among the corpora, or by itself."""
    return str(default_folder(EXPERIMENT, name, Path(DATA)))


def evalset_files(name):
    """All files of an evaluation set; none of one that the experiment does not have.

    Of one in the demo's mirror that is the manifest, which is written when all of them are there.
    """
    if name not in EXPERIMENT.evalsets:
        return []
    if EXPERIMENT.evalsets[name].embedded:
        return [f"{MIRROR}/manifest.json"]
    return [str(path) for path in data_files(EXPERIMENT, name, Path(evalset_folder(name)))]


def evalset_pattern(name):
    """The files of one language as output patterns, with the wildcards version and code."""
    return [
        f"{DATA}/evalsets/{name}/{{version}}/{file}"
        for file in module(name, "data").file_names("{code}")
    ]


def training(wildcards):
    """The `train` settings of a job's system."""
    return EXPERIMENT.systems[wildcards.system]["train"]


def processes(wildcards):
    """How many processes train a system: one for each GPU, where it is not trained on CPUs."""
    gpus = 1 if training(wildcards)["device"] == "cpu" else PLAN.site["gpus"]
    return max(1, gpus)


def gpus_of_bench(wildcards):
    """One GPU to encode with, where there are any, unless the system is trained on CPUs or has no use for it."""
    system = EXPERIMENT.systems[wildcards.system]
    on_cpu = system["train"]["device"] == "cpu" or system["kind"] == "char-ngram"
    return 0 if on_cpu else min(1, PLAN.site["gpus"])


def model_of(wildcards):
    """The trained model of a system, or the files of a folder that it names; else nothing."""
    if wildcards.system in TRAINED:
        return f"{RESULTS}/models/{wildcards.system}/model.json"
    return model_files(EXPERIMENT.systems[wildcards.system])


def model_flag(wildcards, input):
    """`--model FOLDER` for a trained system."""
    trained = wildcards.system in TRAINED
    return ["--model", f"{RESULTS}/models/{wildcards.system}"] if trained else []


def bench_code(wildcards):
    """The source that a benchmark runs: its protocol and data, and its system's kind of encoder."""
    kind = EXPERIMENT.systems[wildcards.system]["kind"]
    return source_of(bench_modules(wildcards.benchmark, kind))


def caption(shown):
    """What the PDF says below a table, with the papers' table that it is made after."""
    return f"{shown.caption} As {shown.paper}." if shown.paper else shown.caption


def tables_for_pdf(wildcards):
    """The tables of the PDF, once it is known that LaTeX is here: before any job starts."""
    try:
        check_latex()
    except EmsError as error:
        raise WorkflowError(str(error)) from None
    return [f"results/tables/{table}.tex" for table in TABLES]
