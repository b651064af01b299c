# The stages as targets: what dvc.yaml calls, and handy by themselves.


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
