# Raw pairs -> decontaminated pairs -> segmented, lower-cased pairs; one job per corpus and language pair.


# The sentences of the validation text, which `decontaminate.validation` keeps out of training.
rule heldkeys:
    input:
        w.validation_pairs,
    output:
        w.held_keys,
    log:
        log=f"{LOGS}/heldkeys.log",
        costs=f"{COSTS}/text/heldkeys.json",
    params:
        **w.stage("evalkeys", ["ems.text.evalkeys"]),
    shell:
        "ems evalkeys {params.settings:q} --validation {input:q} --out {output:q}"
        " --costs {log.costs:q} --log {log.log:q}"


rule decontaminate:
    input:
        archives=w.archives_of,
        documents=w.documents_of,
        evalkeys=w.eval_keys,
        held_out=w.held_out_of,
        earlier=w.earlier_of,
    output:
        pairs=w.clean,
        report=w.clean_report,
    log:
        log=f"{LOGS}/decontaminate/{PAIR}.log",
        costs=f"{COSTS}/text/clean/{PAIR}.json",
    group:
        w.text_group
    resources:
        mem_mb=per_attempt(2000),
        runtime=per_attempt(240),
    params:
        **w.stage("clean", ["ems.text.clean"], "label version pair"),
        documents=options("documents"),
        held_out=options("held_out"),
        earlier=options("earlier"),
    shell:
        "ems clean {params.settings:q} --corpus {wildcards.label:q} --version {wildcards.version:q}"
        " --pair {wildcards.pair:q} --archives {input.archives:q} {params.documents:q}"
        " {params.held_out:q} {params.earlier:q} --keys {input.evalkeys:q} --out {output.pairs:q}"
        " --costs {log.costs:q} --log {log.log:q}"


rule decontamination_report:
    input:
        w.per_pair(w.clean_report, "train", "validation"),
        w.joined_reports,
    output:
        w.decontamination,
    log:
        f"{LOGS}/decontamination_report.log",
    params:
        **w.stage("evalkeys", ["ems.text.clean"]),
    shell:
        "ems report {params.settings:q} --entries {input:q} --out {output:q} --log {log:q}"


rule segment:
    input:
        w.clean,
    output:
        w.segmented,
    log:
        log=f"{LOGS}/segment/{PAIR}.log",
        costs=f"{COSTS}/text/segment/{PAIR}.json",
    group:
        w.text_group
    # One core: an experiment has more pairs than a machine has cores, and with two each they would only
    # wait for each other. Where a single pair is what is left to wait for, as in ParaCrawl:
    # --set-threads segment=8 shard=8. The bytes are the same.
    threads: 1
    resources:
        mem_mb=per_attempt(1500, per_thread=500),
        runtime=per_attempt(480),
    params:
        **w.stage("segment", w.segment_modules, "pair"),
        # finished pieces: no output, since Snakemake deletes outputs before a retry
        state=f"{RESULTS}/state/text/{PAIR}",
    shell:
        "ems segment {params.settings:q} --source {input:q} --state {params.state:q}"
        " --workers {threads} --out {output:q} --costs {log.costs:q} --log {log.log:q}"


rule multiway:
    input:
        w.joined_pairs,
    output:
        pairs=directory(w.multiway_pairs),
        reports=directory(w.multiway_reports),
    log:
        log=f"{LOGS}/multiway.log",
        costs=f"{COSTS}/text/multiway.json",
    resources:
        mem_mb=per_attempt(2000),
        runtime=per_attempt(240),
    params:
        **w.stage("multiway", ["ems.text.multiway"]),
    shell:
        "ems multiway {params.settings:q} --sources {input:q} --out {output.pairs:q}"
        " --reports {output.reports:q} --costs {log.costs:q} --log {log.log:q}"
