# What every stage needs: the checked plan, where things lie, and the helpers of the rules.
import os
import re
import signal
import sys
import time
from pathlib import Path
from threading import Thread

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from ems.bench.encoders import model_files
from ems.config.plugins import benchmark, benchmarks, sets_of
from ems.config.experiment import EMBEDDED
from ems.config.systems import SHARED
from ems.config.stages import stage_hash
from ems.config.experiment import MULTIWAY, WIKIPEDIA
from ems.corpora.locations import text_file
from ems.corpora.own import own_files
from ems.corpora.slots import PLANNED
from ems.base.errors import EmsError
from ems.corpora.evalsets.sets import default_folder, fetched_files, manifest_name, unit_source
from ems.base.processes import look_rarely
from ems.base.processes import VARIABLE
from ems.workflow.job_modules import (
    bench_modules,
    demo_modules,
    evalkeys_modules,
    figure_modules,
    segment_modules,
    source_of,
    table_modules,
)
from ems.workflow.plan import (
    check_cluster,
    check_queue,
    check_times,
    on_slurm,
    plan,
    plans_jobs,
    segments_elsewhere,
)
from ems.base.schema import CODE, LABEL, NAME
from ems.tables.pdf import check_latex
from ems.tables.registry import ASKED, captions, made_of, outputs_of, scores, times_of
from ems.train import AFRESH

signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # Slurm's warning is for the trainer in a job
os.environ[VARIABLE] = str(os.getpid())  # a job stops when this process is gone
look_rarely()

# Snakemake 9.27 knows its executor, and a mode like --unlock, only after it has read this file.
PROFILES = os.environ.get("SNAKEMAKE_PROFILE", "")  # "slurm", or "[slurm, slurm/site.yaml]"
WORDS = [*sys.argv, *re.split(r"[\[\], ]+", PROFILES)]
MAIN = workflow.is_main_process  # a job on a cluster checks what it needs itself
STARTS = MAIN and plans_jobs(WORDS)
ON_CLUSTER = MAIN and on_slurm(WORDS)
if MAIN:  # what another Snakemake brings into the data folder from now on is not brought again
    os.environ[PLANNED] = str(time.time())
try:
    PLAN = plan(
        config,
        elsewhere=not MAIN or workflow.output_settings.dryrun or segments_elsewhere(WORDS),
        jobs=STARTS,
    )
    if STARTS:
        check_times(f"results/{PLAN.experiment.name}", PLAN.site.data)
    if ON_CLUSTER and STARTS:
        check_cluster(PLAN)
    if ON_CLUSTER and STARTS and not workflow.output_settings.dryrun:
        check_queue()
except EmsError as error:
    raise WorkflowError(str(error)) from None
for line in PLAN.missing if MAIN else ():
    logger.warning(f"not on this machine, needed where segment jobs run: {line}")

EXPERIMENT = PLAN.experiment
config["experiment"] = EXPERIMENT.name  # what the report's first page names
# Not in `params:`, where a changed value would train again what is finished.
os.environ[AFRESH] = "1" if PLAN.site.afresh else ""
DATA = PLAN.site.data
MIRROR = f"{DATA}/{EMBEDDED}"  # where ems writes the demo's data
ARCHIVE = f"{DATA}/opus/{{corpus}}/{{version}}/moses/{{pair}}.txt.zip"
MINED = f"{DATA}/opus/{{corpus}}/{{version}}/mined/{{corpus}}.{{pair}}.tsv.gz"
TEXT = f"{DATA}/documents/{{corpus}}/{{version}}/{{pair}}.txt{{packed}}"
DUMP = f"{DATA}/dumps/{{corpus}}/{{version}}/{{pair}}.xml.bz2"
WIKIPEDIA_TEXT = f"{DATA}/wikipedia/{{version}}/{{pair}}.txt.gz"
DOCUMENTS = f"{DATA}/opus/{{corpus}}/{{version}}/{{file}}"
PAIR = "{label}-{version}-{pair}"  # of a corpus, or of a part of one
RESULTS = f"results/{EXPERIMENT.name}"
LOGS = f"{RESULTS}/logs"
COSTS = f"{RESULTS}/costs"  # of jobs, as logs: outputs would be made again if they were missing
TRAINED = [name for name, system in EXPERIMENT.systems.items() if system.trained]
ON_NODES = [  # that several machines share
    name
    for name in TRAINED
    if PLAN.site.nodes > 1
    and EXPERIMENT.systems[name].train.device != "cpu"
    and EXPERIMENT.systems[name].train.steps
]
FITTED = [name for name, system in EXPERIMENT.systems.items() if system.fitted]
SYSTEMS = EXPERIMENT.tabled  # others are made when asked for
VOCABULARIES = list(  # of the systems that are trained for the tables
    dict.fromkeys(
        system.vocabulary
        for system in map(EXPERIMENT.systems.get, SYSTEMS)
        if system.trained or system.of
    )
)
EXPORT_FLAGS = [  # of `ems export`, for every folder of the experiment
    *(
        f"--{flag.replace('_', '-')}"
        for flag in ("onnx", "int8", "without_segmenters")
        if getattr(EXPERIMENT.export, flag)
    ),
    *(["--dimensions", str(EXPERIMENT.export.dimensions)] if EXPERIMENT.export.dimensions else []),
]


def one_of(names):
    """Return the pattern of a wildcard that is one of some names; one that nothing fits for none."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    corpus=NAME,
    label=LABEL,
    file=NAME,
    version=NAME,
    vocabulary=one_of(EXPERIMENT.vocabularies),
    pair=f"{CODE}(-{CODE})?",  # one language of documents
    packed=r"(\.gz)?",
    evalset="[a-z0-9]+",
    unit=NAME,
    system=one_of(EXPERIMENT.systems),
    benchmark=one_of(
        name for name in benchmarks() if set(sets_of(name)) <= set(EXPERIMENT.evalsets)
    ),


def stage(name, modules, reads=""):
    """Return the params of a rule: the settings that its calls name, and a hash of the code that they run.

    `name`: the stage whose settings a job reads, those of the wildcards in `reads`.
    `modules`: what a job runs, or a function of its wildcards that returns this.
    """

    def settings(wildcards):
        parts = {key: wildcards[key] for key in reads.split()}
        expect = stage_hash(EXPERIMENT, name, **parts)
        return ["--experiment", EXPERIMENT.name, "--expect", expect]

    def code(wildcards):
        return source_of(modules(wildcards) if callable(modules) else modules)

    return {"settings": settings, "code": code}


def shown(path, category, labels, words="shown"):
    """An output of `snakemake --report`, with report/<words>.rst: by default its rule's `params.report`."""
    return report(path, caption=f"../report/{words}.rst", category=category, labels=labels)


def folder_of_output(wildcards, output):
    """A params function: the folder of the first output (or of the first of some files)."""
    return str(Path(output[0]).parent)


def per_pair(pattern, *roles):
    """An input function: `pattern` for every pair with a role ("train", "validation") of a job's vocabulary."""

    def value(wildcards):
        vocabulary = wildcards.get("vocabulary", SHARED)
        return [
            pattern.format(
                label=corpus.label, version=corpus.version, pair=pair, vocabulary=vocabulary
            )
            for role in roles
            for corpus, pair in EXPERIMENT.pairs_of(role, vocabulary)
        ]

    return value


def of_system(pattern):
    """An input function: `pattern` for the vocabulary of a job's system."""

    def value(wildcards):
        return pattern.format(vocabulary=EXPERIMENT.systems[wildcards.system].vocabulary)

    return value


def corpus_of(wildcards):
    """The corpus, or the part of one, that a job's wildcards `label` and `version` name."""
    return EXPERIMENT.corpus(wildcards.label, wildcards.version)[1]


def from_source(*patterns):
    """An input function: nothing; or, if a source lacks one of these files, an error with all that sources lack."""

    def value(wildcards):
        files = {Path(pattern.format(**wildcards)) for pattern in patterns}
        if STARTS and files & PLAN.sources.files:
            raise WorkflowError(str(PLAN.sources))
        return []

    return value


def archives(corpus, pair):
    """The archives that hold a pair of a corpus, or the documents of one language."""
    if corpus.documents:
        return [str(text_file(corpus, name, Path(DATA))) for name in corpus.files(pair)]
    if corpus.paths:
        return list(map(str, own_files(corpus, pair)))
    pattern = MINED if corpus.mined else ARCHIVE
    return [
        pattern.format(corpus=corpus.name, version=corpus.version, pair=name)
        for name in corpus.files(pair)
    ]


def archives_of(wildcards):
    """The archives that hold a pair of a corpus or of a part of it."""
    files = archives(corpus_of(wildcards), wildcards.pair)
    if STARTS and set(map(Path, files)) & PLAN.sources.files:  # of the user's own folder
        raise WorkflowError(str(PLAN.sources))
    return files


def documents_of(wildcards):
    """The documents of the lines of a corpus that is divided; nothing for a whole one."""
    corpus = corpus_of(wildcards)
    split = EXPERIMENT.splits.get(corpus.name)
    if corpus.documents or not corpus.part or not split.documents:
        return []
    return DOCUMENTS.format(corpus=corpus.name, version=corpus.version, file=split.documents)


def held_out_of(wildcards):
    """The sentences of the validation text, for a training corpus that must not hold them."""
    role, _ = EXPERIMENT.corpus(wildcards.label, wildcards.version)
    return HELD_KEYS if role == "train" and EXPERIMENT.decontaminate.validation else []


def earlier_of(wildcards):
    """The clean pairs that a corpus must not repeat, with `clean.duplicates: across`."""
    corpora = EXPERIMENT.before(wildcards.label, wildcards.version, wildcards.pair)
    names = [{"label": each.label, "version": each.version} for each in corpora]
    return [f"{CLEAN}.tsv".format(pair=wildcards.pair, **each) for each in names]


def text_group(wildcards):
    """The group of a pair's jobs: those of training may wait for all of validation, and so share no job with them."""
    role, _ = EXPERIMENT.corpus(wildcards.label, wildcards.version)
    return "text" if role == "train" else "validation"


def opus_source(wildcards):
    """Where a corpus comes from: its own source, or the one for OPUS corpora."""
    for _, corpus in EXPERIMENT.all_corpora():
        if (corpus.name, corpus.version) == (wildcards.corpus, wildcards.version):
            kind = "documents" if corpus.documents else "opus"
            return f"{MIRROR}/{kind}" if corpus.source == EMBEDDED else corpus.source
    return EXPERIMENT.sources["opus"]


def embedded_opus(wildcards):
    """The demo mirror as an input, for corpora that come from it."""
    embedded = opus_source(wildcards) == f"{MIRROR}/opus"
    return f"{MIRROR}/manifest.json" if embedded else []


def embedded_documents(wildcards):
    """The demo mirror as an input, for documents that come from it."""
    embedded = opus_source(wildcards) == f"{MIRROR}/documents"
    return f"{MIRROR}/manifest.json" if embedded else []


def language_of_wiki(code):
    """The language of a Wikipedia by its code, as a corpus of the experiment names it."""
    for _, corpus in EXPERIMENT.all_corpora():
        for language in corpus.pairs if corpus.dumped else ():
            if code in corpus.files(language):
                return language
    return code


def evalset_folder(name):
    """Where an evaluation set lies: the user's copy, the demo's, among the corpora, or by itself."""
    return str(default_folder(EXPERIMENT, name, Path(DATA)))


def evalset_files(name):
    """Return the files that jobs wait for of a set: manifests, or files used in place; none if the set is not used."""
    if name not in EXPERIMENT.evalsets:
        return []
    if EXPERIMENT.evalsets[name].embedded:
        return [f"{MIRROR}/manifest.json"]
    return [str(path) for path in fetched_files(EXPERIMENT, name, Path(evalset_folder(name)))]


def evalset_source(wildcards):
    """Where a set comes from: a directory, an address, `embedded` (the demo's mirror), or '' for as published."""
    return unit_source(EXPERIMENT, wildcards.evalset)


def training(wildcards):
    """The `train` settings of a job's system."""
    return EXPERIMENT.systems[wildcards.system].train


def fitted_on(role):
    """An input function: the clean text of a role that a job's system is fitted on."""

    def value(wildcards):
        return [
            f"{CLEAN}.tsv".format(label=corpus.label, version=corpus.version, pair=pair)
            for corpus, pair in EXPERIMENT.fitted_on(role, wildcards.system)
        ]

    return value


def trained_of(wildcards):
    """The trained model of a fused system; nothing for another one."""
    of = EXPERIMENT.systems[wildcards.system].of
    return f"{RESULTS}/models/{of}/model.json" if of else []


def start_of(wildcards):
    """The model that a system's training starts from; nothing for one with start values of its own."""
    start = training(wildcards).start_from
    return f"{RESULTS}/models/{start}/model.json" if start else []


def mined_of(wildcards):
    """The mined pairs that a system learns from, if it does."""
    learns = EXPERIMENT.systems[wildcards.system].objectives.coherence.weight
    return f"{RESULTS}/models/{wildcards.system}/mined/manifest.json" if learns else []


def cpus_of(wildcards):
    """The CPUs that train a system on a machine, all its processes together: one process for each GPU, or one alone."""
    return training(wildcards).threads * max(1, gpus_of(wildcards))


def gpus_of(wildcards):
    """The GPUs that train a system on a machine: none where it is trained on CPUs."""
    return 0 if training(wildcards).device == "cpu" else PLAN.site.gpus


def modules_of_bench(wildcards):
    """What scores a job's system on its benchmark."""
    return bench_modules(wildcards.benchmark, EXPERIMENT.systems[wildcards.system].kind)


def one_gpu(wildcards):
    """One GPU to encode with, where there are any, unless the system is trained on CPUs or has no use for it."""
    system = EXPERIMENT.systems[wildcards.system]
    on_cpu = system.train.device == "cpu" or system.kind == "char-ngram"
    return 0 if on_cpu else min(1, PLAN.site.gpus)


def model_of(wildcards):
    """The model that a system is here, or the files of a folder that it names; else nothing."""
    if wildcards.system in TRAINED + FITTED:
        return f"{RESULTS}/models/{wildcards.system}/model.json"
    return model_files(EXPERIMENT.systems[wildcards.system])


def model_flag(wildcards):
    """`--model FOLDER` for a system that has one here."""
    here = wildcards.system in TRAINED + FITTED
    return ["--model", f"{RESULTS}/models/{wildcards.system}"] if here else []


def tables_for_pdf(wildcards):
    """The tables of the PDF; an error before any job starts if LaTeX is not here."""
    try:
        check_latex()
    except EmsError as error:
        raise WorkflowError(str(error)) from None
    return [f"{RESULTS}/tables/{table}.tex" for table in TABLES]
