# Benchmarks: (system, data) -> one JSON of scores.


rule bench:
    input:
        evalsets=job.bench_files,
        model=job.model,
    output:
        w.scores,
    log:
        **w.logs("bench/{system}-{benchmark}", "bench/{system}/{benchmark}"),
    group:
        job.bench_group
    resources:
        **per_attempt(mem_mb=4000),
        runtime=job.bench_minutes,
        gpu=job.one_gpu,
    params:
        **w.stage("bench", job.bench_modules, "system benchmark"),
        folders=job.bench_folders,
        model=job.model_flag,
    shell:
        "ems bench {params.settings:q} --system {wildcards.system:q} --benchmark {wildcards.benchmark:q}"
        " {params.model:q} --evalset {params.folders:q} --out {output:q} --costs {log.costs:q} --log {log.log:q}"
