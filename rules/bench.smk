# Benchmarks: (system, data) -> one JSON of scores.


rule bench:
    input:
        evalsets=w.bench_files,
        model=w.model_of,
    output:
        w.scores,
    log:
        **w.logs("bench/{system}-{benchmark}", "bench/{system}/{benchmark}"),
    group:
        w.bench_group
    resources:
        **per_attempt(mem_mb=4000),
        runtime=w.bench_minutes,
        gpu=w.one_gpu,
    params:
        **w.stage("bench", w.bench_modules, "system benchmark"),
        folders=w.bench_folders,
        model=w.model_flag,
    shell:
        "ems bench {params.settings:q} --system {wildcards.system:q} --benchmark {wildcards.benchmark:q}"
        " {params.model:q} --evalset {params.folders:q} --out {output:q} --costs {log.costs:q} --log {log.log:q}"
