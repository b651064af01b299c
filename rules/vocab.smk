# The SentencePiece vocabularies (most experiments have one, `shared`), and the token shards that each
# makes of the pairs of its languages.
VOCABULARY = f"{RESULTS}/vocab/{{vocabulary}}/vocabulary.model"
VOCABULARY_REPORT = f"{RESULTS}/reports/vocabulary/{{vocabulary}}.json"
SHARD = f"{RESULTS}/shards/{{vocabulary}}/{{label}}/{{version}}/{{pair}}"
MULTIWAY_SHARDS = f"{RESULTS}/shards/{{vocabulary}}/{THROUGH}"
INDEX = f"{RESULTS}/shards/{{vocabulary}}/index.json"


rule vocabulary_sample:
    input:
        per_pair(SEGMENTED, "train"),
    output:
        text=f"{RESULTS}/vocab/{{vocabulary}}/sample.txt",
        languages=f"{RESULTS}/vocab/{{vocabulary}}/sample.languages",
    log:
        log=f"{LOGS}/vocabulary_sample/{{vocabulary}}.log",
        costs=f"{COSTS}/text/sample/{{vocabulary}}.json",
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        **stage("vocabulary", ["ems.text.subwords"], "vocabulary"),
    shell:
        "ems sample {params.settings:q} --name {wildcards.vocabulary:q} --sources {input:q}"
        " --out {output.text:q} --costs {log.costs:q} --log {log.log:q}"


rule vocabulary:
    input:
        rules.vocabulary_sample.output.text,
    output:
        VOCABULARY,
    log:
        log=f"{LOGS}/vocabulary/{{vocabulary}}.log",
        costs=f"{COSTS}/text/vocabulary/{{vocabulary}}.json",
    resources:
        mem_mb=lambda wildcards, attempt: 12000 * attempt,
        runtime=480,
    params:
        **stage("vocabulary", ["ems.text.subwords"], "vocabulary"),
    shell:
        "ems vocabulary {params.settings:q} --name {wildcards.vocabulary:q} --sample {input:q}"
        " --out {output:q} --costs {log.costs:q} --log {log.log:q}"


rule vocabulary_report:
    input:
        vocabulary=rules.vocabulary.output[0],
        sample=rules.vocabulary_sample.output.text,
        languages=rules.vocabulary_sample.output.languages,
    output:
        VOCABULARY_REPORT,
    log:
        f"{LOGS}/vocabulary_report/{{vocabulary}}.log",
    params:
        **stage("vocabulary", ["ems.text.vocabulary_report"], "vocabulary"),
    shell:
        "ems vocabulary-report {params.settings:q} --name {wildcards.vocabulary:q}"
        " --vocabulary {input.vocabulary:q} --sample {input.sample:q} --out {output:q} --log {log:q}"


rule shard:
    input:
        pairs=SEGMENTED,
        vocabulary=rules.vocabulary.output[0],
    output:
        directory(SHARD),
    log:
        log=f"{LOGS}/shard/{{vocabulary}}/{PAIR}.log",
        costs=f"{COSTS}/text/shards/{{vocabulary}}/{PAIR}.json",
    group:
        "shards"
    threads: 1  # as in segment
    resources:
        mem_mb=lambda wildcards, threads, attempt: (1500 + 500 * threads) * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        code=source_of(["ems.shards.writer"]),
        state=f"{RESULTS}/state/shards/{{vocabulary}}/{PAIR}",
    shell:
        "ems shards --source {input.pairs:q} --vocabulary {input.vocabulary:q}"
        " --state {params.state:q} --workers {threads} --out {output:q}"
        " --costs {log.costs:q} --log {log.log:q}"


rule shard_multiway:
    input:
        pairs=MULTIWAY_PAIRS,
        vocabulary=rules.vocabulary.output[0],
    output:
        directory(MULTIWAY_SHARDS),
    log:
        log=f"{LOGS}/shard/{{vocabulary}}/{MULTIWAY}.log",
        costs=f"{COSTS}/text/shards/{{vocabulary}}/{MULTIWAY}.json",
    threads: 1  # more share the files: --set-threads shard_multiway=8
    resources:
        mem_mb=lambda wildcards, threads, attempt: (1500 + 500 * threads) * attempt,
        runtime=lambda wildcards, attempt: 480 * attempt,
    params:
        code=source_of(["ems.shards.writer"]),
        languages=lambda wildcards: EXPERIMENT.vocabularies[wildcards.vocabulary].languages,
        state=f"{RESULTS}/state/shards/{{vocabulary}}/{MULTIWAY}",
    shell:
        "ems shards --source {input.pairs:q} --vocabulary {input.vocabulary:q}"
        " --languages {params.languages:q} --state {params.state:q} --workers {threads}"
        " --out {output:q} --costs {log.costs:q} --log {log.log:q}"


# One file for training to depend on, instead of all shards: the scheduler looks at each input of a
# waiting job again and again.
rule shard_index:
    input:
        training=per_pair(SHARD, "train"),
        multiway=lambda wildcards: (
            MULTIWAY_SHARDS if EXPERIMENT.multiway_pairs(wildcards.vocabulary) else []
        ),
        validation=per_pair(SHARD, "validation"),
    output:
        INDEX,
    log:
        f"{LOGS}/shard_index/{{vocabulary}}.log",
    params:
        code=source_of(["ems.shards.index"]),
    shell:
        "ems index --training {input.training:q} {input.multiway:q} --validation {input.validation:q}"
        " --out {output:q} --log {log:q}"
