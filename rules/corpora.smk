# Downloads: OPUS Moses zips and documents, from a host, a directory, or the demo that ems writes itself.
# `update` keeps Snakemake from deleting an output before the job: another Snakemake with the same data folder may have
# just fetched the file and be reading it.
# These params have no source hash: an edit of the fetcher must not download the corpora again.


rule demo_mirror:
    output:
        update(w.mirror),
    log:
        **w.logs("demo_mirror", "data/demo-mirror"),
    params:
        code=demo_source(),
        out=subpath(output[0], parent=True),
    shell:
        "ems demo-mirror --out {params.out:q} --costs {log.costs:q} --log {log.log:q}"


# All files of a corpus. The receipt has the SHA-256 of each; a file that is here is not fetched again.
rule fetch:
    input:
        job.fetched_from,
    output:
        w.fetched,
    log:
        **w.logs("fetch/{corpus}-{version}-{kind}-{form}", "data/"),
    retries: 1  # ems tries each connection again by itself (`downloads` in config.yaml)
    params:
        source=job.opus_source,
        flags=job.fetch_flags,
    shell:
        "ems fetch --source={params.source:q} --corpus {wildcards.corpus:q} --version {wildcards.version:q}"
        " {params.flags:q} --receipt {output:q} --costs {log.costs:q} --log {log.log:q}"


rule fetch_dump:
    input:
        job.from_source(w.dump),
    output:
        update(w.dump),
    log:
        **w.logs("fetch/{corpus}-{version}-{pair}-dump", "data/"),
    retries: 1  # as in fetch
    params:
        source=job.opus_source,
    shell:
        "ems fetch --source={params.source:q} --corpus {wildcards.corpus:q} --version {wildcards.version:q} --pair"
        " {wildcards.pair:q} --format dump --out {output:q} --costs {log.costs:q} --log {log.log:q}"


# The largest takes hours; faster with --set-threads wikipedia=16. The bytes are the same.
rule wikipedia:
    input:
        w.wikipedia_dump,
    output:
        text=update(f"{w.wikipedia}.gz"),
        counts=update(f"{w.wikipedia}.json"),
    log:
        **w.logs("wikipedia/{version}-{pair}", "data/"),
    resources:
        **per_attempt(mem_mb=1000, per_thread=1000, runtime=1440),
    params:
        code=source_of(["ems.text.wikipedia"]),
        language=job.language_of_wiki,
        # finished pieces; not an output, since Snakemake deletes outputs before a retry
        state=f"{DATA}/wikipedia/.state/{{version}}-{{pair}}",
    shell:
        "ems wikipedia --dump {input:q} --language {params.language:q} --state {params.state:q} --workers {threads}"
        " --out {output.text:q} --costs {log.costs:q} --log {log.log:q}"


rule fetch_documents:
    input:
        job.from_source(w.documents),
    output:
        update(w.documents),
    log:
        f"{LOGS}/fetch/{{corpus}}-{{version}}-{{file}}.log",
    retries: 1  # as in fetch
    params:
        source=job.opus_source,
    shell:
        "ems fetch --source={params.source:q} --corpus {wildcards.corpus:q} --version {wildcards.version:q} --pair"
        " {wildcards.file:q} --format documents --out {output:q} --log {log:q}"
