# EMS: from parallel corpora to the papers' tables. Each rule file is one stage, in the order of the data.
#   snakemake all                              the experiment that config.yaml names
#   snakemake results/tables/tatoeba.tex       one table
#   snakemake --profile slurm all              the same on a cluster
#   snakemake --config experiment=tiny -- all  another experiment
from snakemake.utils import min_version

min_version("9.0")


# built from envs/ems.def; only `--sdm apptainer` looks at it
container: "envs/ems.sif"


report: "rules/report/workflow.rst"


include: "rules/common.smk"
include: "rules/patches.smk"
include: "rules/targets.smk"
include: "rules/corpora.smk"
include: "rules/evalsets.smk"
include: "rules/text.smk"
include: "rules/vocab.smk"
include: "rules/train.smk"
include: "rules/bench.smk"
include: "rules/tables.smk"
include: "rules/export.smk"


onstart:
    mend(workflow)
    for line in w.changes(workflow.dag.needrun_jobs()):
        logger.info(line)


onsuccess:
    w.keep_records()


onerror:
    w.keep_records()


# Here: an included file cannot set the default target. With the models, though tables need only their scores: Snakemake
# deletes a model when it starts to make it again. If that job dies and the scores are up to date, it asks for it no more.
rule all:
    default_target: True
    input:
        w.targets["tables"],
        w.targets["models"],
        w.selected_targets,


# Jobs of a cluster. The others are short, or need the internet, which its nodes often lack. That they ask for no
# memory does not tell them apart: with `default-resources` in a profile Snakemake gives every rule some.
SUBMITTED = "wikipedia decontaminate segment multiway vocabulary_sample vocabulary shard shard_multiway mine".split()
SUBMITTED += "train train_on_nodes fit bench".split()
workflow.localrules(*(rule.name for rule in workflow.rules if rule.name not in SUBMITTED))
