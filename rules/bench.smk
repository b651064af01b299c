# Benchmarks: (system, data) -> one JSON of scores.
rule bench_tatoeba:
    input:
        evalset=TATOEBA_FILES,
        model=model_of,
    output:
        f"{RESULTS}/scores/{{system}}/tatoeba.json",
    log:
        f"{LOGS}/bench_tatoeba/{{system}}.log",
    benchmark:
        f"{COSTS}/bench_tatoeba/{{system}}.tsv"
    group:
        "bench"
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=60,
    params:
        expect=lambda wildcards: stage_hash(
            EXPERIMENT, "bench", system=wildcards.system, benchmark="tatoeba"
        ),
        code=source_hash("ems.bench") + source_hash("ems.encode"),
        experiment=EXPERIMENT.name,
        folder=lambda wildcards, input: folder_of_output(wildcards, input.evalset),
        model=model_flag,
    shell:
        "ems bench-tatoeba --experiment {params.experiment} --expect {params.expect}"
        " --system {wildcards.system} {params.model}"
        " --evalset {params.folder} --out {output} --log {log}"
