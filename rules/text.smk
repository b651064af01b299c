# Raw pairs -> decontaminated pairs -> segmented, lower-cased pairs, in one pass. Small pairs of a corpus share a job,
# `part` (ems/workflow/parts.py): its output is a receipt with the SHA-256 of all that it made. A pair that is done is
# not made again (ems/base/stamps.py).


# The sentences of the validation text, which `decontaminate.validation` keeps out of training.
rule heldkeys:
    input:
        w.validation_parts,
    output:
        w.held_keys,
    log:
        **w.logs("heldkeys", "text/"),
    params:
        **w.stage("evalkeys", ["ems.text.evalkeys"]),
        pairs=w.validation_pairs,
    shell:
        "ems evalkeys {params.settings:q} --validation {params.pairs:q} --out {output:q} --costs {log.costs:q} --log"
        " {log.log:q}"


# Translated documents of one's own -> their sentence pairs, with names and lines of both documents.
rule align:
    input:
        job.from_source(w.aligned),
    output:
        w.aligned,
    log:
        **w.logs("align/{corpus}-{version}-{pair}", "text/"),
    resources:
        **per_attempt(mem_mb=1000, per_thread=500, runtime=720),
    params:
        code=source_of(["ems.use.aligned"]),
        documents=job.translated,
        flags=job.align_flags,
    shell:
        "ems align {params.flags:q} --format jsonl --threads {threads} --out {output:q} --costs {log.costs:q} --log {log.log:q}"


rule prepare:
    input:
        archives=job.archives,
        documents=job.documents,
        evalkeys=w.eval_keys,
        held_out=job.held_out,
        earlier=job.earlier,
    output:
        w.part,
    log:
        **w.logs(f"prepare/{PART}", "text/"),
    wildcard_constraints:
        label=w.labels_of("train"),
    # One core, as there are more jobs than cores. To speed up one large pair, as in ParaCrawl:
    # --set-threads prepare=8 shard=8. The bytes are the same.
    resources:
        **per_attempt(mem_mb=2000, per_thread=500, runtime=720),
    params:
        **w.stage("prepare", job.prepare_modules, "label version part"),
        data=DATA,
        pairs=job.pairs,
        held_out=options("held_out"),
        text=subpath(output[0], ancestor=4),
        receipt=w.part,
        # finished pieces of large pairs; not an output, since Snakemake deletes outputs before a retry
        state=f"{RESULTS}/state/text/{PART}",
    shell:
        "ems prepare {params.settings:q} --corpus {wildcards.label:q} --version {wildcards.version:q} --pair"
        " {params.pairs:q} --data {params.data:q} --keys {input.evalkeys:q} {params.held_out:q} --text {params.text:q}"
        " --state {params.state:q} --workers {threads} --out {params.receipt:q} --costs {log.costs:q} --log {log.log:q}"


# A separate rule, since training text may wait for all validation text: `--until prepare` then makes both.
use rule prepare as prepare_validation with:
    wildcard_constraints:
        label=w.labels_of("validation"),


# The files of one language pair as targets.
use rule prepare as pair with:
    output:
        *(
            update(path.replace("{pair}", "{part}"))
            for path in (w.clean, w.clean_report, w.segmented)
        ),
    log:
        **w.logs(f"prepare/{PART}-alone", "text/"),
    wildcard_constraints:
        part=LANGUAGES,


rule decontamination_report:
    input:
        job.per_part(w.part, "train", "validation"),
        w.joined_reports,
    output:
        w.decontamination,
    log:
        f"{LOGS}/decontamination_report.log",
    params:
        **w.stage("evalkeys", ["ems.text.clean"]),
        reports=job.per_pair(w.clean_report, "train", "validation"),
        joined=w.joined_reports,
    shell:
        "ems merge-reports {params.settings:q} --entries {params.reports:q} {params.joined:q} --out {output:q} --log {log:q}"


rule multiway:
    input:
        w.joined_parts,
    output:
        pairs=directory(w.multiway_pairs),
        reports=directory(w.multiway_reports),
    log:
        **w.logs("multiway", "text/"),
    resources:
        **per_attempt(mem_mb=2000, runtime=240),
    params:
        **w.stage("multiway", ["ems.text.multiway"]),
        sources=w.joined_pairs,
    shell:
        "ems multiway {params.settings:q} --sources {params.sources:q} --out {output.pairs:q} --reports {output.reports:q}"
        " --costs {log.costs:q} --log {log.log:q}"
