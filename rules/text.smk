# Raw pairs -> decontaminated pairs -> segmented, lower-cased pairs; one job per corpus and language pair.
CLEAN = f"{RESULTS}/text/clean/{{corpus}}/{{version}}/{{pair}}"
SEGMENTED = f"{RESULTS}/text/segmented/{{corpus}}/{{version}}/{{pair}}.tsv"


rule decontaminate:
    input:
        archives=archives_of,
        documents=documents_of,
        evalkeys=rules.evalkeys.output[0],
    output:
        pairs=f"{CLEAN}.tsv",
        report=f"{CLEAN}.json",
    log:
        f"{LOGS}/decontaminate/{{corpus}}-{{version}}-{{pair}}.log",
    group:
        "text"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        expect=lambda wildcards: stage_hash(
            EXPERIMENT,
            "clean",
            label=wildcards.corpus,
            version=wildcards.version,
            pair=wildcards.pair,
        ),
        code=source_hash("ems.text.clean"),
        experiment=EXPERIMENT.name,
        documents=lambda wildcards, input: (
            ["--documents", input.documents] if input.documents else []
        ),
        costs=f"{COSTS}/text/clean/{{corpus}}-{{version}}-{{pair}}.json",
    shell:
        "ems clean --experiment {params.experiment:q} --expect {params.expect:q}"
        " --corpus {wildcards.corpus:q} --version {wildcards.version:q} --pair {wildcards.pair:q}"
        " --archives {input.archives:q} {params.documents:q} --keys {input.evalkeys:q}"
        " --out {output.pairs:q} --costs {params.costs:q} --log {log:q}"


rule decontamination_report:
    input:
        every_pair(f"{CLEAN}.json"),
    output:
        f"{RESULTS}/reports/decontamination.json",
    log:
        f"{LOGS}/decontamination_report.log",
    resources:
        mem_mb=800,
        runtime=10,
    params:
        expect=settings_hash("evalkeys"),
        code=source_hash("ems.text.clean"),
        experiment=EXPERIMENT.name,
    shell:
        "ems report --experiment {params.experiment:q} --expect {params.expect:q}"
        " --entries {input:q} --out {output:q} --log {log:q}"


rule segment:
    input:
        f"{CLEAN}.tsv",
    output:
        SEGMENTED,
    log:
        f"{LOGS}/segment/{{corpus}}-{{version}}-{{pair}}.log",
    group:
        "text"
    # One core: an experiment has more pairs than a machine has cores, and with two each they would only
    # wait for each other. Where a single pair is what is left to wait for, as in ParaCrawl:
    # --set-threads segment=8 shard=8. The bytes are the same.
    threads: 1
    resources:
        mem_mb=lambda wildcards, threads, attempt: (1500 + 500 * threads) * attempt,
        runtime=lambda wildcards, attempt: 480 * attempt,
    params:
        expect=settings_hash("segment", "pair"),
        code=lambda wildcards: source_of(segment_modules(EXPERIMENT, wildcards.pair)),
        experiment=EXPERIMENT.name,
        # finished pieces: no output, since Snakemake deletes outputs before a retry
        state=f"{RESULTS}/state/text/{{corpus}}-{{version}}-{{pair}}",
        costs=f"{COSTS}/text/segment/{{corpus}}-{{version}}-{{pair}}.json",
    shell:
        "ems segment --experiment {params.experiment:q} --expect {params.expect:q}"
        " --source {input:q} --state {params.state:q} --workers {threads}"
        " --out {output:q} --costs {params.costs:q} --log {log:q}"
