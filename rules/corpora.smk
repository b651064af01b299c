# Downloads: OPUS Moses zips and documents, from a host, a directory, or the demo that ems writes itself.
# `update`: Snakemake deletes the outputs of a job before it starts. Another Snakemake that shares the data folder may
# just have brought this file and read it now.
# No source hash in these params: an edit of the fetcher must not download the corpora again.
ARCHIVES = list(
    dict.fromkeys(  # the parts of a corpus come from one archive
        archive
        for _, corpus in EXPERIMENT.all_corpora()
        for pair in corpus.pairs
        for archive in archives(corpus, pair)
    )
)


rule demo_mirror:
    output:
        update(f"{MIRROR}/manifest.json"),
    log:
        log=f"{LOGS}/demo_mirror.log",
        costs=f"{COSTS}/data/demo-mirror.json",
    params:
        code=source_of(demo_modules()),
        out=folder_of_output,
    shell:
        "ems demo-mirror --out {params.out:q} --costs {log.costs:q} --log {log.log:q}"


rule fetch:
    input:
        embedded_opus,
        from_source(ARCHIVE),
    output:
        update(ARCHIVE),
    log:
        log=f"{LOGS}/fetch/{{corpus}}-{{version}}-{{pair}}.log",
        costs=f"{COSTS}/data/fetch/{{corpus}}-{{version}}-{{pair}}.json",
    retries: 1  # ems tries each connection again by itself (`downloads` in config.yaml)
    params:
        source=opus_source,
        flags=lambda wildcards, input: ["--generated"] if input else [],
    shell:
        "ems fetch --source={params.source:q} --corpus {wildcards.corpus:q}"
        " --version {wildcards.version:q} --pair {wildcards.pair:q}"
        " {params.flags:q} --out {output:q} --costs {log.costs:q} --log {log.log:q}"


use rule fetch as fetch_mined with:
    input:
        from_source(MINED),
    output:
        update(MINED),
    log:
        log=f"{LOGS}/fetch/{{corpus}}-{{version}}-{{pair}}-mined.log",
        costs=f"{COSTS}/data/fetch/{{corpus}}-{{version}}-{{pair}}-mined.json",
    params:
        flags=["--format", "mined"],


use rule fetch as fetch_text with:
    input:
        embedded_documents,
        from_source(TEXT),
    output:
        update(TEXT),
    log:
        log=f"{LOGS}/fetch/{{corpus}}-{{version}}-{{pair}}-text{{packed}}.log",
        costs=f"{COSTS}/data/fetch/{{corpus}}-{{version}}-{{pair}}-text{{packed}}.json",
    params:
        flags=lambda wildcards, input: [
            "--format",
            "text",
            *(["--generated"] if input else []),
        ],


use rule fetch as fetch_dump with:
    input:
        from_source(DUMP),
    output:
        update(DUMP),
    log:
        log=f"{LOGS}/fetch/{{corpus}}-{{version}}-{{pair}}-dump.log",
        costs=f"{COSTS}/data/fetch/{{corpus}}-{{version}}-{{pair}}-dump.json",
    params:
        flags=["--format", "dump"],


# Hours for the largest: --set-threads wikipedia=16. The bytes are the same.
rule wikipedia:
    input:
        DUMP.replace("{corpus}", WIKIPEDIA),
    output:
        text=update(WIKIPEDIA_TEXT),
        counts=update(WIKIPEDIA_TEXT.replace(".txt.gz", ".txt.json")),
    log:
        log=f"{LOGS}/wikipedia/{{version}}-{{pair}}.log",
        costs=f"{COSTS}/data/wikipedia/{{version}}-{{pair}}.json",
    threads: 1
    resources:
        mem_mb=lambda wildcards, threads, attempt: (1000 + 1000 * threads) * attempt,
        runtime=lambda wildcards, attempt: 1440 * attempt,
    params:
        code=source_of(["ems.text.wikipedia"]),
        language=lambda wildcards: language_of_wiki(wildcards.pair),
        # finished pieces: no output, since Snakemake deletes outputs before a retry
        state=f"{DATA}/wikipedia/.state/{{version}}-{{pair}}",
    shell:
        "ems wikipedia --dump {input:q} --language {params.language:q} --state {params.state:q}"
        " --workers {threads} --out {output.text:q} --costs {log.costs:q} --log {log.log:q}"


rule fetch_documents:
    input:
        from_source(DOCUMENTS),
    output:
        update(DOCUMENTS),
    log:
        f"{LOGS}/fetch/{{corpus}}-{{version}}-{{file}}.log",
    retries: 1  # ems tries each connection again by itself (`downloads` in config.yaml)
    params:
        source=opus_source,
    shell:
        "ems fetch-documents --source={params.source:q} --corpus {wildcards.corpus:q}"
        " --version {wildcards.version:q} --out {output:q} --log {log:q}"
