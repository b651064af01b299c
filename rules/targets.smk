# What can be asked for by name: everything (`all`), and the stages by themselves, which dvc.yaml calls.


# With the models, though tables need only their scores: Snakemake deletes a model when it starts to make it again. If
# that job dies and the scores are up to date, it does not ask for the model any more.
rule all:
    default_target: True
    input:
        w.table_targets,
        w.model_targets,
        w.selected_targets,


rule data:
    input:
        w.data_targets,


rule evalsets:
    input:
        w.evalset_targets,


rule text:
    input:
        w.text_targets,


rule models:
    input:
        w.model_targets,


rule tables:
    input:
        w.table_targets,


rule exports:
    input:
        w.export_targets,
