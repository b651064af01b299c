# The SentencePiece vocabularies (most experiments have one, `shared`), and the token shards that each
# makes of the pairs of its languages.
VOCABULARY = f"{RESULTS}/vocab/{{vocabulary}}/vocabulary.model"
VOCABULARY_REPORT = f"{RESULTS}/reports/vocabulary/{{vocabulary}}.json"
SHARD = f"{RESULTS}/shards/{{vocabulary}}/{{corpus}}/{{version}}/{{pair}}"
INDEX = f"{RESULTS}/shards/{{vocabulary}}/index.json"


rule vocabulary_sample:
    input:
        of_vocabulary(SEGMENTED, "train"),
    output:
        text=f"{RESULTS}/vocab/{{vocabulary}}/sample.txt",
        languages=f"{RESULTS}/vocab/{{vocabulary}}/sample.languages",
    log:
        f"{LOGS}/vocabulary_sample/{{vocabulary}}.log",
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        expect=settings_hash("vocabulary", "vocabulary"),
        code=source_hash("ems.text.subwords"),
        experiment=EXPERIMENT.name,
        costs=f"{COSTS}/text/sample/{{vocabulary}}.json",
    shell:
        "ems sample --experiment {params.experiment:q} --expect {params.expect:q}"
        " --name {wildcards.vocabulary:q}"
        " --sources {input:q} --out {output.text:q} --costs {params.costs:q} --log {log:q}"


rule vocabulary:
    input:
        rules.vocabulary_sample.output.text,
    output:
        VOCABULARY,
    log:
        f"{LOGS}/vocabulary/{{vocabulary}}.log",
    resources:
        mem_mb=lambda wildcards, attempt: 8000 * attempt,
        runtime=480,
    params:
        expect=settings_hash("vocabulary", "vocabulary"),
        code=source_hash("ems.text.subwords"),
        experiment=EXPERIMENT.name,
        costs=f"{COSTS}/text/vocabulary/{{vocabulary}}.json",
    shell:
        "ems vocabulary --experiment {params.experiment:q} --expect {params.expect:q}"
        " --name {wildcards.vocabulary:q}"
        " --sample {input:q} --out {output:q} --costs {params.costs:q} --log {log:q}"


rule vocabulary_report:
    input:
        vocabulary=rules.vocabulary.output[0],
        sample=rules.vocabulary_sample.output.text,
        languages=rules.vocabulary_sample.output.languages,
    output:
        VOCABULARY_REPORT,
    log:
        f"{LOGS}/vocabulary_report/{{vocabulary}}.log",
    resources:
        mem_mb=800,
        runtime=60,
    params:
        expect=settings_hash("vocabulary", "vocabulary"),
        code=source_hash("ems.text.vocabulary_report"),
        experiment=EXPERIMENT.name,
    shell:
        "ems vocabulary-report --experiment {params.experiment:q} --expect {params.expect:q}"
        " --name {wildcards.vocabulary:q}"
        " --vocabulary {input.vocabulary:q} --sample {input.sample:q} --out {output:q} --log {log:q}"


rule shard:
    input:
        pairs=SEGMENTED,
        vocabulary=rules.vocabulary.output[0],
    output:
        directory(SHARD),
    log:
        f"{LOGS}/shard/{{vocabulary}}/{{corpus}}-{{version}}-{{pair}}.log",
    group:
        "shards"
    threads: 1  # as in segment
    resources:
        mem_mb=lambda wildcards, threads, attempt: (1500 + 500 * threads) * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        code=source_hash("ems.shards.writer"),
        state=f"{RESULTS}/state/shards/{{vocabulary}}/{{corpus}}-{{version}}-{{pair}}",
        costs=f"{COSTS}/text/shards/{{vocabulary}}/{{corpus}}-{{version}}-{{pair}}.json",
    shell:
        "ems shards --source {input.pairs:q} --vocabulary {input.vocabulary:q}"
        " --state {params.state:q} --workers {threads}"
        " --out {output:q} --costs {params.costs:q} --log {log:q}"


# One file for training to depend on, instead of all shards: the scheduler looks at each input of a
# waiting job again and again.
rule shard_index:
    input:
        training=of_vocabulary(SHARD, "train"),
        validation=of_vocabulary(SHARD, "validation"),
    output:
        INDEX,
    log:
        f"{LOGS}/shard_index/{{vocabulary}}.log",
    resources:
        mem_mb=800,
        runtime=10,
    params:
        code=source_hash("ems.shards.index"),
    shell:
        "ems index --training {input.training:q} --validation {input.validation:q}"
        " --out {output:q} --log {log:q}"
