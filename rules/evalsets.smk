# The benchmarks' own files, and the sentences of theirs that training must not see.
# A unit is an archive, a file or the files of one language. Sets that are corpora too lie among the corpora; copies of
# the user's (`path`) and sets of the demo are used in place, except Tatoeba: the demo shows the fetcher with it.
EVALSET_FILES = [file for name in EXPERIMENT.evalsets for file in evalset_files(name)]
AGAINST = EXPERIMENT.decontaminate.against  # whose sentences training must not see
UNIT_MANIFEST = f"{DATA}/evalsets/{{evalset}}/{{version}}/{manifest_name('{unit}')}"


rule fetch_evalset:
    input:
        lambda wildcards: (
            [f"{MIRROR}/manifest.json"] if evalset_source(wildcards) == EMBEDDED else []
        ),
        from_source(UNIT_MANIFEST),
    output:
        update(UNIT_MANIFEST),  # see rules/corpora.smk
    log:
        log=f"{LOGS}/fetch/{{evalset}}-{{version}}-{{unit}}.log",
        costs=f"{COSTS}/data/fetch-evalset/{{evalset}}-{{version}}-{{unit}}.json",
    retries: 1  # ems tries each connection again by itself (`downloads` in config.yaml)
    params:
        source=evalset_source,
        out=folder_of_output,
    shell:
        "ems fetch-evalset --evalset {wildcards.evalset:q} --source={params.source:q}"
        " --code {wildcards.unit:q} --out {params.out:q} --costs {log.costs:q} --log {log.log:q}"


rule evalkeys:
    input:
        [file for name in AGAINST for file in evalset_files(name)],
    output:
        f"{RESULTS}/text/evalkeys.tsv",
    log:
        log=f"{LOGS}/evalkeys.log",
        costs=f"{COSTS}/text/evalkeys.json",
    params:
        **stage("evalkeys", evalkeys_modules(AGAINST)),
        folders=[f"{name}={evalset_folder(name)}" for name in AGAINST],
    shell:
        "ems evalkeys {params.settings:q} --evalset {params.folders:q} --out {output:q}"
        " --costs {log.costs:q} --log {log.log:q}"
