# One model per system. The state for resuming is no output: Snakemake deletes outputs before a retry.
MODEL = f"{RESULTS}/models/{{system}}"
# Slurm warns a training two minutes before its time is over; it saves, and is submitted again.
WARNED = "--signal=USR1@120"


# Pairs of similar sentences, for the objective `coherence`: found by the system that it starts from.
rule mine:
    input:
        shards=of_system(INDEX),
        model=start_of,
    output:
        f"{MODEL}/mined/manifest.json",
        f"{MODEL}/mined/pairs.npy",
    log:
        log=f"{LOGS}/mine/{{system}}.log",
        costs=f"{COSTS}/mine/{{system}}.json",
    threads: lambda wildcards: training(wildcards).threads
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=lambda wildcards, attempt: 720 * attempt,
        gpu=one_gpu,
    params:
        **stage("mine", ["ems.train.mine_documents"], "system"),
        model=lambda wildcards, input: str(Path(input.model).parent),
        out=folder_of_output,
        state=f"{RESULTS}/state/mine/{{system}}",
    shell:
        "ems mine-documents {params.settings:q} --system {wildcards.system:q} --shards {input.shards:q}"
        " --model {params.model:q} --state {params.state:q} --out {params.out:q}"
        " --costs {log.costs:q} --log {log.log:q}"


rule train:
    input:
        shards=of_system(INDEX),
        start=start_of,
        mined=mined_of,
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
    wildcard_constraints:
        system=one_of([name for name in TRAINED if name not in ON_NODES]),
    priority: 1  # before benchmarks of other systems: what takes longest must not start last
    retries: 10 if ON_CLUSTER else 0  # a node that is taken away ends an attempt; the next one resumes
    threads: cpus_of
    resources:
        cpus_per_task=cpus_of,  # Snakemake cuts `threads` to the cores of the machine that submits
        mem_mb=lambda wildcards, attempt: 8000 * (1 + attempt // 4),
        runtime=2880,
        gpu=gpus_of,
        nodes=1,
        processes=gpus_of,
        slurm_extra=WARNED,
    params:
        **stage("train", ["ems.train"], "system"),
        out=folder_of_output,
        # of another system's weights, and of mined pairs, where a system has them
        folders=lambda wildcards, input: [
            word
            for flag, file in (("--start", input.start), ("--mined", input.mined))
            if file
            for word in (flag, str(Path(file).parent))
        ],
        state=f"{RESULTS}/state/{{system}}",
        scalars=f"{LOGS}/tensorboard/{{system}}",
    shell:
        "exec ems train {params.settings:q} --system {wildcards.system:q} --shards {input.shards:q}"
        " --vocabulary {input.vocabulary:q} {params.folders:q} --state {params.state:q}"
        " --times {output.times:q}"
        " --scalars {params.scalars:q} --out {params.out:q} --costs {log.costs:q} --log {log.log:q}"
        " --processes {resources.processes} --nodes {resources.nodes}"


# The same on several machines, in one step of Slurm: `mpi` says that the command starts it itself.
if ON_NODES:

    use rule train as train_on_nodes with:
        wildcard_constraints:
            system=one_of(ON_NODES),
        resources:
            **({"gres": f"gpu:{PLAN.site.gpus}"} if PLAN.site.gpus else {}),
            cpus_per_task=cpus_of,
            mem_mb=lambda wildcards, attempt: 8000 * (1 + attempt // 4),
            runtime=2880,
            nodes=PLAN.site.nodes,
            processes=PLAN.site.gpus,
            mpi="srun",
            tasks=PLAN.site.nodes,  # with more Slurm could give one node most of the CPUs
            tasks_per_gpu=0,  # said by the line above
            slurm_extra=WARNED,


# Systems of n-grams: what n-grams weigh, and beside the vectors of a trained system how much they count.
rule fit:
    input:
        text=fitted_on("train"),
        pairs=fitted_on("validation"),
        model=trained_of,
    output:
        f"{MODEL}/model.json",
        f"{MODEL}/ngrams.safetensors",
    log:
        log=f"{LOGS}/fit/{{system}}.log",
        costs=f"{COSTS}/fit/{{system}}.json",
    wildcard_constraints:
        system=one_of(FITTED),
    threads: lambda wildcards: training(wildcards).threads if trained_of(wildcards) else 1
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
        gpu=one_gpu,
    params:
        **stage("fit", ["ems.model.char_ngrams"], "system"),
        out=folder_of_output,
        folders=lambda wildcards, input: [
            word
            for flag, files in (("--text", input.text), ("--pairs", input.pairs))
            if files
            for word in (flag, *files)
        ],
        model=lambda wildcards, input: (
            ["--model", str(Path(input.model).parent)] if input.model else []
        ),
    shell:
        "ems fit {params.settings:q} --system {wildcards.system:q} {params.folders:q}"
        " {params.model:q} --out {params.out:q} --costs {log.costs:q} --log {log.log:q}"
