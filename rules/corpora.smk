# Downloads: OPUS Moses zips and documents, from a host, a directory, or the demo that ems writes itself.
# `update`: Snakemake deletes the outputs of a job before it starts. Another Snakemake that shares the data folder may
# just have brought this file and read it now.
# No source hash in these params: an edit of the fetcher must not download the corpora again.


rule demo_mirror:
    output:
        update(w.mirror),
    log:
        **w.logs("demo_mirror", "data/demo-mirror"),
    params:
        code=w.demo_code,
        out=folder_of_output,
    shell:
        "ems demo-mirror --out {params.out:q} --costs {log.costs:q} --log {log.log:q}"


rule fetch:
    input:
        w.embedded_opus,
        w.from_source(w.archive),
    output:
        update(w.archive),
    log:
        **w.logs("fetch/{corpus}-{version}-{pair}", "data/fetch/{corpus}-{version}-{pair}"),
    retries: 1  # ems tries each connection again by itself (`downloads` in config.yaml)
    params:
        source=w.opus_source,
        flags=w.fetch_flags(),
    shell:
        "ems fetch --source={params.source:q} --corpus {wildcards.corpus:q} --version {wildcards.version:q} --pair"
        " {wildcards.pair:q} {params.flags:q} --out {output:q} --costs {log.costs:q} --log {log.log:q}"


use rule fetch as fetch_mined with:
    input:
        w.from_source(w.mined),
    output:
        update(w.mined),
    log:
        **w.logs(
            "fetch/{corpus}-{version}-{pair}-mined", "data/fetch/{corpus}-{version}-{pair}-mined"
        ),
    params:
        flags=["--format", "mined"],


use rule fetch as fetch_text with:
    input:
        w.embedded_opus,
        w.from_source(w.text),
    output:
        update(w.text),
    log:
        **w.logs(
            "fetch/{corpus}-{version}-{pair}-text{packed}",
            "data/fetch/{corpus}-{version}-{pair}-text{packed}",
        ),
    params:
        flags=w.fetch_flags("--format", "text"),


use rule fetch as fetch_dump with:
    input:
        w.from_source(w.dump),
    output:
        update(w.dump),
    log:
        **w.logs(
            "fetch/{corpus}-{version}-{pair}-dump", "data/fetch/{corpus}-{version}-{pair}-dump"
        ),
    params:
        flags=["--format", "dump"],


# Hours for the largest: --set-threads wikipedia=16. The bytes are the same.
rule wikipedia:
    input:
        w.wikipedia_dump,
    output:
        text=update(f"{w.wikipedia}.gz"),
        counts=update(f"{w.wikipedia}.json"),
    log:
        **w.logs("wikipedia/{version}-{pair}", "data/wikipedia/{version}-{pair}"),
    resources:
        **per_attempt(mem_mb=1000, per_thread=1000, runtime=1440),
    params:
        code=source_of(["ems.text.wikipedia"]),
        language=w.language_of_wiki,
        # finished pieces: no output, since Snakemake deletes outputs before a retry
        state=f"{DATA}/wikipedia/.state/{{version}}-{{pair}}",
    shell:
        "ems wikipedia --dump {input:q} --language {params.language:q} --state {params.state:q} --workers {threads}"
        " --out {output.text:q} --costs {log.costs:q} --log {log.log:q}"


rule fetch_documents:
    input:
        w.from_source(w.documents),
    output:
        update(w.documents),
    log:
        f"{LOGS}/fetch/{{corpus}}-{{version}}-{{file}}.log",
    retries: 1  # as in fetch
    params:
        source=w.opus_source,
    shell:
        "ems fetch-documents --source={params.source:q} --corpus {wildcards.corpus:q} --version {wildcards.version:q}"
        " --out {output:q} --log {log:q}"
