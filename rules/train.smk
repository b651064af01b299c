# One model per system. The state for resuming is no output: Snakemake deletes outputs before a retry.
# Slurm warns a training two minutes before its time is over; it saves, and is submitted again.
WARNED = "--signal=USR1@120"


# Pairs of similar sentences, for the objective `coherence`: found by the system that it starts from.
rule mine:
    input:
        shards=w.of_system(w.index),
        model=w.start_of,
    output:
        f"{w.mined_pairs}/manifest.json",
        f"{w.mined_pairs}/pairs.npy",
    log:
        log=f"{LOGS}/mine/{{system}}.log",
        costs=f"{COSTS}/mine/{{system}}.json",
    threads: w.threads
    resources:
        mem_mb=per_attempt(4000),
        runtime=per_attempt(720),
        gpu=w.one_gpu,
    params:
        **w.stage("mine", ["ems.train.mine_documents"], "system"),
        model=folder_of_model,
        out=folder_of_output,
        state=f"{RESULTS}/state/mine/{{system}}",
    shell:
        "ems mine-documents {params.settings:q} --system {wildcards.system:q} --shards {input.shards:q}"
        " --model {params.model:q} --state {params.state:q} --out {params.out:q}"
        " --costs {log.costs:q} --log {log.log:q}"


rule train:
    input:
        shards=w.of_system(w.index),
        start=w.start_of,
        mined=w.mined_of,
        # not by its time: a vocabulary of other pieces makes other shards, and so another index
        vocabulary=ancient(w.of_system(w.vocabulary)),
    output:
        f"{w.model}/model.json",
        f"{w.model}/model.safetensors",
        f"{w.model}/heads.safetensors",
        f"{w.model}/vocabulary.model",
        f"{w.model}/losses.jsonl",
        times=f"{COSTS}/train/{{system}}.times.jsonl",
    log:
        log=f"{LOGS}/train/{{system}}.log",
        costs=f"{COSTS}/train/{{system}}.json",
    wildcard_constraints:
        system=one_of(w.on_one),
    priority: 1  # before benchmarks of other systems: what takes longest must not start last
    retries: w.train_retries
    threads: w.cpus
    resources:
        cpus_per_task=w.cpus,  # Snakemake cuts `threads` to the cores of the machine that submits
        mem_mb=w.train_memory,
        runtime=2880,
        gpu=w.gpus,
        nodes=1,
        processes=w.gpus,
        slurm_extra=WARNED,
    params:
        **w.stage("train", ["ems.train.job"], "system"),
        out=folder_of_output,
        # of another system's weights, and of mined pairs, where a system has them
        folders=options("start", "mined", folders=True),
        state=f"{RESULTS}/state/{{system}}",
        scalars=f"{LOGS}/tensorboard/{{system}}",
    shell:
        "exec ems train {params.settings:q} --system {wildcards.system:q} --shards {input.shards:q}"
        " --vocabulary {input.vocabulary:q} {params.folders:q} --state {params.state:q}"
        " --times {output.times:q}"
        " --scalars {params.scalars:q} --out {params.out:q} --costs {log.costs:q} --log {log.log:q}"
        " --processes {resources.processes} --nodes {resources.nodes}"


# The same on several machines, in one step of Slurm: `mpi` says that the command starts it itself.
if w.on_nodes:

    use rule train as train_on_nodes with:
        wildcard_constraints:
            system=one_of(w.on_nodes),
        resources:
            **w.gres,
            cpus_per_task=w.cpus,
            mem_mb=w.train_memory,
            runtime=2880,
            nodes=w.site.nodes,
            processes=w.site.gpus,
            mpi="srun",
            tasks=w.site.nodes,  # with more Slurm could give one node most of the CPUs
            tasks_per_gpu=0,  # said by the line above
            slurm_extra=WARNED,


# Systems of n-grams: what n-grams weigh, and beside the vectors of a trained system how much they count.
rule fit:
    input:
        text=w.fitted_on("train"),
        pairs=w.fitted_on("validation"),
        model=w.part_of,
    output:
        f"{w.model}/model.json",
        f"{w.model}/ngrams.safetensors",
    log:
        log=f"{LOGS}/fit/{{system}}.log",
        costs=f"{COSTS}/fit/{{system}}.json",
    wildcard_constraints:
        system=one_of(w.fitted),
    threads: w.fit_threads
    resources:
        mem_mb=per_attempt(4000),
        runtime=per_attempt(240),
        gpu=w.one_gpu,
    params:
        **w.stage("fit", ["ems.model.fit"], "system"),
        out=folder_of_output,
        folders=options("text", "pairs"),
        model=options("model", folders=True),
    shell:
        "ems fit {params.settings:q} --system {wildcards.system:q} {params.folders:q}"
        " {params.model:q} --out {params.out:q} --costs {log.costs:q} --log {log.log:q}"
