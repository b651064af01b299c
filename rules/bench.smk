# Benchmarks: (system, data) -> one JSON of scores.
rule bench:
    input:
        evalset=lambda wildcards: evalset_files(wildcards.benchmark),
        model=model_of,
    output:
        f"{RESULTS}/scores/{{system}}/{{benchmark}}.json",
    log:
        f"{LOGS}/bench/{{system}}-{{benchmark}}.log",
    group:
        "bench"
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=60,
    params:
        expect=settings_hash("bench", "system", "benchmark"),
        code=source_hash("ems.bench") + source_hash("ems.encode"),
        experiment=EXPERIMENT.name,
        folder=lambda wildcards: evalset_folder(wildcards.benchmark),
        model=model_flag,
        costs=f"{COSTS}/bench/{{system}}/{{benchmark}}.json",
    shell:
        "ems bench --experiment {params.experiment} --expect {params.expect}"
        " --system {wildcards.system} --benchmark {wildcards.benchmark} {params.model}"
        " --evalset {params.folder} --out {output} --costs {params.costs} --log {log}"
