# One model per system. The state for resuming is no output: Snakemake deletes outputs before a retry.
MODEL = f"{RESULTS}/models/{{system}}"


rule train:
    input:
        shards=of_system(INDEX),
        # not by its time: a vocabulary of other pieces makes other shards, and so another index
        vocabulary=ancient(of_system(VOCABULARY)),
    output:
        f"{MODEL}/model.json",
        f"{MODEL}/model.safetensors",
        f"{MODEL}/heads.safetensors",
        f"{MODEL}/vocabulary.model",
        f"{MODEL}/losses.jsonl",
        times=f"{COSTS}/train/{{system}}.times.jsonl",
    log:
        log=f"{LOGS}/train/{{system}}.log",
        costs=f"{COSTS}/train/{{system}}.json",
    retries: 10 if ON_CLUSTER else 0  # a node that is taken away ends an attempt; the next one resumes
    threads: lambda wildcards: training(wildcards).threads * processes(wildcards)
    resources:
        mem_mb=lambda wildcards, attempt: 8000 * min(attempt, 3),
        runtime=2880,
        gpu=PLAN.site.gpus,
    params:
        **stage("train", ["ems.train"], "system"),
        out=folder_of_output,
        state=f"{RESULTS}/state/{{system}}",
        scalars=f"{LOGS}/tensorboard/{{system}}",
    shell:
        "exec ems train {params.settings:q} --system {wildcards.system:q} --shards {input.shards:q}"
        " --vocabulary {input.vocabulary:q} --state {params.state:q} --times {output.times:q}"
        " --scalars {params.scalars:q} --out {params.out:q} --costs {log.costs:q} --log {log.log:q}"
        " --processes {resources.gpu}"
