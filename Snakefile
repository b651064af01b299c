# EMS: from parallel corpora to the papers' tables. Each rule file is one stage, in the order of the data.
#   snakemake all                              the experiment that config.yaml names
#   snakemake results/tables/tatoeba.tex       one table
#   snakemake --profile slurm all              the same on a cluster
#   snakemake --config experiment=tiny -- all  another experiment
from snakemake.utils import min_version

min_version("9.0")


# built from envs/ems.def; used only with `--sdm apptainer`
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


# Not in an included file, which cannot set the default target. The models are listed although tables need only scores:
# Snakemake deletes a model before it is made again, and if that job dies, no up-to-date score would request the model.
rule all:
    default_target: True
    input:
        w.targets["tables"],
        w.targets["models"],
        w.selected_targets,


# Rules that run on a cluster. The others are short, or need the internet, which nodes often lack. A missing `mem_mb` does
# not mark them: with `default-resources` in a profile Snakemake gives every rule some.
SUBMITTED = "wikipedia align prepare prepare_validation pair multiway vocabulary_sample".split()
SUBMITTED += "vocabulary shard shard_multiway mine train train_on_nodes fit bench examples".split()
workflow.localrules(*(rule.name for rule in workflow.rules if rule.name not in SUBMITTED))
