# A trained system as a folder for sentence-transformers and onnxruntime, checked in another process. Its card
# has the scores, so they are made first.
rule export:
    input:
        model=f"{MODEL}/model.json",
        report=f"{RESULTS}/reports/decontamination.json",
        scores=[f"{RESULTS}/scores/{{system}}/{name}.json" for name in EXPERIMENT.benchmarks],
    output:
        f"{RESULTS}/exports/{{system}}/README.md",
    log:
        f"{LOGS}/export/{{system}}.log",
    wildcard_constraints:
        system=one_of(TRAINED),
    params:
        code=source_of(["ems.export"]),
        flags=EXPORT_FLAGS,
        model=lambda wildcards, input: str(Path(input.model).parent),
        out=folder_of_output,
        experiment=EXPERIMENT.name,
    shell:
        "ems export --model {params.model:q} --out {params.out:q} {params.flags:q}"
        " --experiment {params.experiment:q} --log {log:q}"
