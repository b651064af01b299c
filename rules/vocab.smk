# The SentencePiece vocabularies (most experiments have one, `shared`), and the shards of their language pairs.


rule vocabulary_sample:
    input:
        job.per_part(w.part, "train"),
    output:
        text=f"{w.sample}.txt",
        languages=f"{w.sample}.languages",
    log:
        **w.logs("vocabulary_sample/{vocabulary}", "text/sample/{vocabulary}"),
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        **w.stage("vocabulary", ["ems.text.subwords"], "vocabulary"),
        sources=job.per_pair(w.segmented, "train"),
    shell:
        "ems sample {params.settings:q} --name {wildcards.vocabulary:q} --sources {params.sources:q} --out {output.text:q}"
        " --costs {log.costs:q} --log {log.log:q}"


rule vocabulary:
    input:
        f"{w.sample}.txt",
    output:
        w.vocabulary,
    log:
        **w.logs("vocabulary/{vocabulary}", "text/"),
    resources:
        **per_attempt(mem_mb=12000),
        runtime=480,
    params:
        **w.stage("vocabulary", ["ems.text.subwords"], "vocabulary"),
    shell:
        "ems vocabulary {params.settings:q} --name {wildcards.vocabulary:q} --sample {input:q} --out {output:q}"
        " --costs {log.costs:q} --log {log.log:q}"


rule vocabulary_report:
    input:
        vocabulary=w.vocabulary,
        sample=f"{w.sample}.txt",
        languages=f"{w.sample}.languages",
    output:
        w.vocabulary_report,
    log:
        f"{LOGS}/vocabulary_report/{{vocabulary}}.log",
    params:
        **w.stage("vocabulary", ["ems.text.vocabulary_report"], "vocabulary"),
    shell:
        "ems vocabulary-report {params.settings:q} --name {wildcards.vocabulary:q} --vocabulary {input.vocabulary:q}"
        " --sample {input.sample:q} --out {output:q} --log {log:q}"


# The language pairs of a part, see rules/text.smk.
rule shard:
    input:
        text=w.part,
        vocabulary=w.vocabulary,
    output:
        w.shard_part,
    log:
        **w.logs(f"shard/{{vocabulary}}/{PART}", f"text/shards/{{vocabulary}}/{PART}"),
    resources:
        **per_attempt(mem_mb=1500, per_thread=500, runtime=240),  # threads: as in prepare
    params:
        code=source_of(["ems.shards.writer"]),
        sources=job.sharded,
        out=f"{RESULTS}/shards/{{vocabulary}}/{{label}}/{{version}}",
        state=f"{RESULTS}/state/shards/{{vocabulary}}/{PART}",
    shell:
        "ems shards --source {params.sources:q} --vocabulary {input.vocabulary:q} --state {params.state:q} --workers"
        " {threads} --out {params.out:q} --receipt {output:q} --costs {log.costs:q} --log {log.log:q}"


rule shard_multiway:
    input:
        pairs=w.multiway_pairs,
        vocabulary=w.vocabulary,
    output:
        directory(w.multiway_shards),
    log:
        **w.logs("shard/{vocabulary}/multiway", "text/shards/{vocabulary}/multiway"),
    resources:
        **per_attempt(mem_mb=1500, per_thread=500, runtime=480),  # faster with --set-threads shard_multiway=8
    params:
        code=source_of(["ems.shards.writer"]),
        languages=job.languages,
        state=f"{RESULTS}/state/shards/{{vocabulary}}/multiway",
    shell:
        "ems shards --source {input.pairs:q} --vocabulary {input.vocabulary:q} --languages {params.languages:q}"
        " --state {params.state:q} --workers {threads} --out {output:q} --costs {log.costs:q} --log {log.log:q}"


# One file for training to depend on instead of all shards, since the scheduler checks the inputs of waiting jobs often.
rule shard_index:
    input:
        parts=job.per_part(w.shard_part, "train", "validation"),
        multiway=job.joined_shards,
    output:
        w.index,
    log:
        f"{LOGS}/shard_index/{{vocabulary}}.log",
    params:
        code=source_of(["ems.shards.index"]),
        training=job.per_pair(w.shard, "train"),
        validation=job.per_pair(w.shard, "validation"),
    shell:
        "ems index --training {params.training:q} {input.multiway:q} --validation {params.validation:q} --out"
        " {output:q} --log {log:q}"
