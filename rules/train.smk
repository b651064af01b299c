# One model per system. The state for resuming is not an output, since Snakemake deletes outputs before a retry.


# Pairs of similar sentences for the objective `coherence`, mined with the model that the system starts from.
rule mine:
    input:
        shards=job.of_system(w.index),
        model=job.start,
    output:
        f"{w.mined_pairs}/manifest.json",
        f"{w.mined_pairs}/pairs.npy",
    log:
        **w.logs("mine/{system}"),
    threads: job.threads
    resources:
        **per_attempt(mem_mb=4000, runtime=720),
        gpu=job.one_gpu,
    params:
        **w.stage("mine", ["ems.train.mine_documents"], "system"),
        model=subpath(input.model, parent=True),
        out=subpath(output[0], parent=True),
        state=f"{RESULTS}/state/mine/{{system}}",
    shell:
        "ems mine-documents {params.settings:q} --system {wildcards.system:q} --shards {input.shards:q} --model"
        " {params.model:q} --state {params.state:q} --out {params.out:q} --costs {log.costs:q} --log {log.log:q}"


TRAINING = {
    "cpus_per_task": job.cpus,  # Snakemake cuts `threads` to the cores of its own machine
    # most retries resume a stopped training and need no more memory
    "mem_mb": lambda wildcards, attempt: 8000 * (1 + attempt // 4),
    "runtime": 2880,
    # Slurm warns two minutes before the time limit: the training saves and is resubmitted
    "slurm_extra": "--signal=USR1@120",
}


rule train:
    input:
        shards=job.of_system(w.index),
        start=job.start,
        mined=job.mined,
        # its time is ignored: a vocabulary of other pieces makes other shards, and so another index
        vocabulary=ancient(job.of_system(w.vocabulary)),
    output:
        f"{w.model}/model.json",
        f"{w.model}/model.safetensors",
        f"{w.model}/heads.safetensors",
        f"{w.model}/vocabulary.model",
        f"{w.model}/losses.jsonl",
        times=f"{COSTS}/train/{{system}}.times.jsonl",
    log:
        **w.logs("train/{system}"),
    wildcard_constraints:
        system=one_of(w.on_one),
    priority: 1  # before benchmarks of other systems: the longest jobs must not start last
    retries: 10 if w.on_cluster else 0  # the loss of a node ends an attempt; the next attempt resumes
    threads: job.cpus
    resources:
        **TRAINING,
        gpu=job.gpus,
        nodes=1,
        processes=job.gpus,
    params:
        **w.stage("train", ["ems.train.job"], "system"),
        out=subpath(output[0], parent=True),
        # folders of the weights to start from and of mined pairs, if the system has them
        folders=options("start", "mined", folders=True),
        state=f"{RESULTS}/state/{{system}}",
        scalars=f"{LOGS}/tensorboard/{{system}}",
    shell:
        "exec ems train {params.settings:q} --system {wildcards.system:q} --shards {input.shards:q} --vocabulary"
        " {input.vocabulary:q} {params.folders:q} --state {params.state:q} --times {output.times:q} --scalars"
        " {params.scalars:q} --out {params.out:q} --costs {log.costs:q} --log {log.log:q} --processes"
        " {resources.processes} --nodes {resources.nodes}"


# The same on several machines, in one Slurm step; with `mpi` the command starts the step itself.
if w.on_nodes:

    use rule train as train_on_nodes with:
        wildcard_constraints:
            system=one_of(w.on_nodes),
        resources:
            **TRAINING,
            **({"gres": f"gpu:{w.site.gpus}"} if w.site.gpus else {}),
            nodes=w.site.nodes,
            processes=w.site.gpus,
            mpi="srun",
            tasks=w.site.nodes,  # with more, Slurm could give one node most of the CPUs
            tasks_per_gpu=0,  # `tasks` counts instead


# Systems of n-grams: the weights of n-grams, and their share next to the vectors of a trained system.
rule fit:
    input:
        job.fitted_on,
        model=job.part,
    output:
        f"{w.model}/model.json",
        f"{w.model}/ngrams.safetensors",
    log:
        **w.logs("fit/{system}"),
    wildcard_constraints:
        system=one_of(w.fitted),
    threads: job.fit_threads
    resources:
        **per_attempt(mem_mb=4000, runtime=240),
        gpu=job.one_gpu,
    params:
        **w.stage("fit", ["ems.model.fit"], "system"),
        out=subpath(output[0], parent=True),
        text=job.fit_flags,
        model=options("model", folders=True),
    shell:
        "ems fit {params.settings:q} --system {wildcards.system:q} {params.text:q} {params.model:q} --out"
        " {params.out:q} --costs {log.costs:q} --log {log.log:q}"
