# Raw pairs -> decontaminated pairs -> segmented, lower-cased pairs; one job per corpus and language pair.
HELD_KEYS = f"{RESULTS}/text/heldkeys.tsv"
CLEAN = f"{RESULTS}/text/clean/{{label}}/{{version}}/{{pair}}"
SEGMENTED = f"{RESULTS}/text/segmented/{{label}}/{{version}}/{{pair}}.tsv"
# of pairs that share a translation: all language pairs in one job
THROUGH = f"{MULTIWAY}/{EXPERIMENT.multiway.through or 'none'}"
MULTIWAY_PAIRS = f"{RESULTS}/text/segmented/{THROUGH}"
MULTIWAY_REPORTS = f"{RESULTS}/text/clean/{THROUGH}"


# The sentences of the validation text, which `decontaminate.validation` keeps out of training.
rule heldkeys:
    input:
        [
            f"{CLEAN}.tsv".format(label=corpus.label, version=corpus.version, pair=pair)
            for corpus in EXPERIMENT.validation
            for pair in corpus.pairs
        ],
    output:
        HELD_KEYS,
    log:
        log=f"{LOGS}/heldkeys.log",
        costs=f"{COSTS}/text/heldkeys.json",
    params:
        **stage("evalkeys", ["ems.text.evalkeys"]),
    shell:
        "ems evalkeys {params.settings:q} --validation {input:q} --out {output:q}"
        " --costs {log.costs:q} --log {log.log:q}"


rule decontaminate:
    input:
        archives=archives_of,
        documents=documents_of,
        evalkeys=rules.evalkeys.output[0],
        held_out=held_out_of,
        earlier=earlier_of,
    output:
        pairs=f"{CLEAN}.tsv",
        report=f"{CLEAN}.json",
    log:
        log=f"{LOGS}/decontaminate/{PAIR}.log",
        costs=f"{COSTS}/text/clean/{PAIR}.json",
    group:
        text_group
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        **stage("clean", ["ems.text.clean"], "label version pair"),
        documents=lambda wildcards, input: (
            ["--documents", input.documents] if input.documents else []
        ),
        held_out=lambda wildcards, input: (["--held-out", input.held_out] if input.held_out else []),
        earlier=lambda wildcards, input: (["--earlier", *input.earlier] if input.earlier else []),
    shell:
        "ems clean {params.settings:q} --corpus {wildcards.label:q} --version {wildcards.version:q}"
        " --pair {wildcards.pair:q} --archives {input.archives:q} {params.documents:q}"
        " {params.held_out:q} {params.earlier:q} --keys {input.evalkeys:q} --out {output.pairs:q}"
        " --costs {log.costs:q} --log {log.log:q}"


rule decontamination_report:
    input:
        per_pair(f"{CLEAN}.json", "train", "validation"),
        MULTIWAY_REPORTS if EXPERIMENT.multiway.through else [],
    output:
        f"{RESULTS}/reports/decontamination.json",
    log:
        f"{LOGS}/decontamination_report.log",
    params:
        **stage("evalkeys", ["ems.text.clean"]),
    shell:
        "ems report {params.settings:q} --entries {input:q} --out {output:q} --log {log:q}"


rule segment:
    input:
        f"{CLEAN}.tsv",
    output:
        SEGMENTED,
    log:
        log=f"{LOGS}/segment/{PAIR}.log",
        costs=f"{COSTS}/text/segment/{PAIR}.json",
    group:
        text_group
    # One core: an experiment has more pairs than a machine has cores, and with two each they would only
    # wait for each other. Where a single pair is what is left to wait for, as in ParaCrawl:
    # --set-threads segment=8 shard=8. The bytes are the same.
    threads: 1
    resources:
        mem_mb=lambda wildcards, threads, attempt: (1500 + 500 * threads) * attempt,
        runtime=lambda wildcards, attempt: 480 * attempt,
    params:
        **stage(
            "segment",
            lambda wildcards: segment_modules(EXPERIMENT, wildcards.pair),
            "pair",
        ),
        # finished pieces: no output, since Snakemake deletes outputs before a retry
        state=f"{RESULTS}/state/text/{PAIR}",
    shell:
        "ems segment {params.settings:q} --source {input:q} --state {params.state:q}"
        " --workers {threads} --out {output:q} --costs {log.costs:q} --log {log.log:q}"


rule multiway:
    input:
        [
            SEGMENTED.format(label=corpus.label, version=corpus.version, pair=pair)
            for corpus, pair in EXPERIMENT.joined()
        ],
    output:
        pairs=directory(MULTIWAY_PAIRS),
        reports=directory(MULTIWAY_REPORTS),
    log:
        log=f"{LOGS}/multiway.log",
        costs=f"{COSTS}/text/multiway.json",
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 240 * attempt,
    params:
        **stage("multiway", ["ems.text.multiway"]),
    shell:
        "ems multiway {params.settings:q} --sources {input:q} --out {output.pairs:q}"
        " --reports {output.reports:q} --costs {log.costs:q} --log {log.log:q}"
