# Benchmarks: (system, data) -> one JSON of scores.


rule bench:
    input:
        evalsets=lambda wildcards: [
            file for name in sets_of(wildcards.benchmark) for file in evalset_files(name)
        ],
        model=model_of,
    output:
        f"{RESULTS}/scores/{{system}}/{{benchmark}}.json",
    log:
        log=f"{LOGS}/bench/{{system}}-{{benchmark}}.log",
        costs=f"{COSTS}/bench/{{system}}/{{benchmark}}.json",
    group:  # one with a GPU is a job of its own: four together would ask for four
        lambda wildcards: "bench_on_gpu" if one_gpu(wildcards) else "bench"
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=lambda wildcards: 60 * benchmark(wildcards.benchmark).hours,
        gpu=one_gpu,
    params:
        **stage("bench", modules_of_bench, "system benchmark"),
        folders=lambda wildcards: [
            f"{name}={evalset_folder(name)}" for name in sets_of(wildcards.benchmark)
        ],
        model=model_flag,
    shell:
        "ems bench {params.settings:q} --system {wildcards.system:q}"
        " --benchmark {wildcards.benchmark:q} {params.model:q} --evalset {params.folders:q}"
        " --out {output:q} --costs {log.costs:q} --log {log.log:q}"
