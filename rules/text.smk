# Raw pairs -> decontaminated pairs -> segmented, lower-cased pairs; one job per corpus and language pair.


# The sentences of the validation text, which `decontaminate.validation` keeps out of training.
rule heldkeys:
    input:
        w.validation_pairs,
    output:
        w.held_keys,
    log:
        **w.logs("heldkeys", "text/"),
    params:
        **w.stage("evalkeys", ["ems.text.evalkeys"]),
    shell:
        "ems evalkeys {params.settings:q} --validation {input:q} --out {output:q} --costs {log.costs:q} --log"
        " {log.log:q}"


rule decontaminate:
    input:
        archives=job.archives,
        documents=job.documents,
        evalkeys=w.eval_keys,
        held_out=job.held_out,
        earlier=job.earlier,
    output:
        pairs=w.clean,
        report=w.clean_report,
    log:
        **w.logs(f"decontaminate/{PAIR}", f"text/clean/{PAIR}"),
    group:
        job.text_group
    resources:
        **per_attempt(mem_mb=2000, runtime=240),
    params:
        **w.stage("clean", ["ems.text.clean"], "label version pair"),
        documents=options("documents"),
        held_out=options("held_out"),
        earlier=options("earlier"),
    shell:
        "ems clean {params.settings:q} --corpus {wildcards.label:q} --version {wildcards.version:q} --pair"
        " {wildcards.pair:q} --archives {input.archives:q} {params.documents:q} {params.held_out:q}"
        " {params.earlier:q} --keys {input.evalkeys:q} --out {output.pairs:q} --costs {log.costs:q} --log {log.log:q}"


rule decontamination_report:
    input:
        job.per_pair(w.clean_report, "train", "validation"),
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
        **w.logs(f"segment/{PAIR}", "text/"),
    group:
        job.text_group
    # One core, as there are more language pairs than cores. To speed up one large pair, as in ParaCrawl:
    # --set-threads segment=8 shard=8. The bytes are the same.
    resources:
        **per_attempt(mem_mb=1500, per_thread=500, runtime=480),
    params:
        **w.stage("segment", job.segment_modules, "pair"),
        # finished pieces; not an output, since Snakemake deletes outputs before a retry
        state=f"{RESULTS}/state/text/{PAIR}",
    shell:
        "ems segment {params.settings:q} --source {input:q} --state {params.state:q} --workers {threads} --out"
        " {output:q} --costs {log.costs:q} --log {log.log:q}"


rule multiway:
    input:
        w.joined_pairs,
    output:
        pairs=directory(w.multiway_pairs),
        reports=directory(w.multiway_reports),
    log:
        **w.logs("multiway", "text/"),
    resources:
        **per_attempt(mem_mb=2000, runtime=240),
    params:
        **w.stage("multiway", ["ems.text.multiway"]),
    shell:
        "ems multiway {params.settings:q} --sources {input:q} --out {output.pairs:q} --reports {output.reports:q}"
        " --costs {log.costs:q} --log {log.log:q}"
