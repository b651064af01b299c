# A trained system as a folder for sentence-transformers and onnxruntime, checked in another process. Its card shows
# the scores, so they are made first.
rule export:
    input:
        model=w.model_json,
        report=w.decontamination,
        scores=w.scores_of_system,
    output:
        w.export,
    log:
        f"{LOGS}/export/{{system}}.log",
    wildcard_constraints:
        system=one_of(w.trained),
    params:
        code=source_of(["ems.export"]),
        flags=w.export_flags,
        model=subpath(input.model, parent=True),
        out=subpath(output[0], parent=True),
        experiment=w.name,
    shell:
        "ems export --model {params.model:q} --out {params.out:q} {params.flags:q} --experiment {params.experiment:q}"
        " --log {log:q}"
