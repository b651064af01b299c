# Downloads: OPUS Moses zips, from a host, a directory, or the demo that ems writes itself.
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
        f"{MIRROR}/manifest.json",
    log:
        f"{LOGS}/demo_mirror.log",
    params:
        **stage("", demo_modules(), "data/demo-mirror"),
        out=folder_of_output,
    shell:
        "ems demo-mirror {params.job:q} --out {params.out:q} --log {log:q}"


rule fetch:
    input:
        embedded_opus,
        from_source(ARCHIVE),
    output:
        ARCHIVE,
    log:
        f"{LOGS}/fetch/{{corpus}}-{{version}}-{{pair}}.log",
    retries: 1  # ems tries each connection again by itself (`downloads` in config.yaml)
    params:
        source=opus_source,
        flags=lambda wildcards, input: ["--generated"] if input else [],
        costs=f"{COSTS}/data/fetch/{{corpus}}-{{version}}-{{pair}}.json",
    shell:
        "ems fetch --source={params.source:q} --corpus {wildcards.corpus:q}"
        " --version {wildcards.version:q} --pair {wildcards.pair:q}"
        " {params.flags:q} --out {output:q} --costs {params.costs:q} --log {log:q}"


use rule fetch as fetch_mined with:
    input:
        from_source(MINED),
    output:
        MINED,
    log:
        f"{LOGS}/fetch/{{corpus}}-{{version}}-{{pair}}-mined.log",
    params:
        flags=["--format", "mined"],
        costs=f"{COSTS}/data/fetch/{{corpus}}-{{version}}-{{pair}}-mined.json",


rule fetch_documents:
    input:
        from_source(DOCUMENTS),
    output:
        DOCUMENTS,
    log:
        f"{LOGS}/fetch/{{corpus}}-{{version}}-{{file}}.log",
    retries: 1  # ems tries each connection again by itself (`downloads` in config.yaml)
    params:
        source=opus_source,
    shell:
        "ems fetch-documents --source={params.source:q} --corpus {wildcards.corpus:q}"
        " --version {wildcards.version:q} --out {output:q} --log {log:q}"
