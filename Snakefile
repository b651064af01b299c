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


# Not worth a job of a cluster, or in need of the internet, which its nodes often lack.
localrules:
    all,
    data,
    evalsets,
    text,
    models,
    demo_mirror,
    fetch,
    fetch_mined,
    fetch_documents,
    fetch_evalset,
    evalkeys,
    decontamination_report,
    vocabulary_report,
    shard_index,
    table,
    figure,
    costs,
    timed_figure,
    timed_table,
    tables_pdf,


rule all:
    default_target: True
    input:
        expand("results/tables/{table}.tex", table=TABLES),
        expand("results/figures/{figure}.svg", figure=FIGURES),
        f"{COSTS}/summary/costs.tex",
        TIMED,


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


rule models:
    input:
        expand(
            f"{RESULTS}/models/{{system}}/model.json",
            system=[name for name in SYSTEMS if name in TRAINED],
        ),
