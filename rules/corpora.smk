# Downloads: OPUS Moses zips, from a host, a directory, or the demo that ems writes itself.
# No source hash in these params: an edit of the fetcher must not download the corpora again.
ARCHIVES = every_pair(f"{DATA}/opus/{{corpus}}/{{version}}/moses/{{pair}}.txt.zip")


rule demo_mirror:
    output:
        f"{MIRROR}/manifest.json",
    log:
        f"{LOGS}/demo_mirror.log",
    benchmark:
        f"{COSTS}/demo_mirror.tsv"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        code=source_hash("ems.corpora.demo"),
        out=folder_of_output,
    shell:
        "ems demo-mirror --out {params.out} --log {log}"


rule fetch:
    input:
        embedded_opus,
    output:
        f"{DATA}/opus/{{corpus}}/{{version}}/moses/{{pair}}.txt.zip",
    log:
        f"{LOGS}/fetch/{{corpus}}-{{version}}-{{pair}}.log",
    retries: 3
    resources:
        mem_mb=800,
        runtime=600,
    params:
        source=opus_source,
        generated=lambda wildcards, input: "--generated" if input else "",
    shell:
        "ems fetch --source {params.source:q} --corpus {wildcards.corpus}"
        " --version {wildcards.version} --pair {wildcards.pair}"
        " {params.generated} --out {output} --log {log}"
