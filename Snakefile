# EMS: from parallel corpora to the papers' tables. Each rule file is one stage, in the order of the data.
#   snakemake all                              the experiment that config.yaml names
#   snakemake results/tables/tatoeba.tex       one table
#   snakemake --profile slurm all              the same on a cluster
#   snakemake --config experiment=tiny -- all  another experiment
from snakemake.utils import min_version

min_version("9.0")


# built from envs/ems.def; only `--sdm apptainer` looks at it
container: "envs/ems.sif"


report: "report/workflow.rst"


include: "rules/common.smk"
include: "rules/corpora.smk"
include: "rules/evalsets.smk"
include: "rules/text.smk"
include: "rules/vocab.smk"
include: "rules/train.smk"
include: "rules/bench.smk"
include: "rules/tables.smk"
include: "rules/export.smk"


onstart:
    # Snakemake 9.27 would solve its plan again each second, once for every job that has finished.
    workflow.scheduler.job_rate_limiter = None
    # Its handler of SIGTERM waits for a lock that the thread which the signal interrupts holds while it finishes jobs.
    stop = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *caught: Thread(target=stop, args=caught).start())
    # In an array the executor 2.8.0 starts each task as the first one's job, which then waits for the first one's
    # outputs, and deletes them if its own command fails.
    if getattr(workflow.executor_settings, "array_jobs", None):
        raise WorkflowError(
            "--slurm-array-jobs: a task that fails would fail others and delete the model of the first one; "
            "leave it out, each job is then submitted by itself, or use slurm/array.sh"
        )


# What the experiment keeps in its own folder.
rule tables:
    input:
        expand(f"{RESULTS}/tables/{{table}}.tex", table=TABLES),
        expand(f"{RESULTS}/figures/{{figure}}.svg", figure=FIGURES),
        f"{RESULTS}/metrics/scores.json",
        f"{COSTS}/summary/costs.tex",
        expand(f"{COSTS}/summary/{{timed}}.tex", timed=TIMED_TABLES),
        expand(f"{COSTS}/summary/{{timed}}.svg", timed=TIMED_FIGURES),


rule models:
    input:
        expand(
            f"{RESULTS}/models/{{system}}/model.json",
            system=[name for name in SYSTEMS if name in TRAINED + FITTED],
        ),


# With the models, though tables need only their scores: Snakemake deletes a model when it starts to make it again. If
# that job dies and the scores are up to date, it does not ask for the model any more.
rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.models.input,
        expand("results/tables/{table}.tex", table=TABLES),
        expand("results/figures/{figure}.svg", figure=FIGURES),


# The stages as targets: what dvc.yaml calls, and handy by themselves.
rule data:
    input:
        ARCHIVES,
        EVALSET_FILES,


rule evalsets:
    input:
        EVALSET_FILES,


rule text:
    input:
        f"{RESULTS}/reports/decontamination.json",
        expand([INDEX, VOCABULARY_REPORT], vocabulary=VOCABULARIES),


rule exports:
    input:
        expand(f"{RESULTS}/exports/{{system}}/README.md", system=EXPERIMENT.export.systems),


# Jobs of a cluster. The others are short, or need the internet, which its nodes often lack. That they ask for no
# memory does not tell them apart: with `default-resources` in a profile Snakemake gives every rule some.
SUBMITTED = "wikipedia decontaminate segment multiway vocabulary_sample vocabulary shard shard_multiway mine".split()
SUBMITTED += "train train_on_nodes fit bench".split()
workflow.localrules(*(rule.name for rule in workflow.rules if rule.name not in SUBMITTED))
