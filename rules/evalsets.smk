# The benchmarks' own files, and the sentences of theirs that training must not see.
# One rule per set with files for each language, and one for all sets that come in archives. NTREX and ParaCrawl lie
# among the corpora; a copy that the user has (`path`) is used in place, and so are the demo's, but for Tatoeba: its
# fetcher is what the demo shows.
EVALSET_FILES = [file for name in EXPERIMENT.evalsets for file in evalset_files(name)]
UNIT_MANIFEST = f"{DATA}/evalsets/{{evalset}}/{{version}}/{manifest_name('{unit}')}"
TATOEBA_EMBEDDED = EXPERIMENT.sources["tatoeba"] == EMBEDDED


rule fetch_flores200:
    input:
        from_source(*evalset_pattern("flores200")),
    output:
        evalset_pattern("flores200"),
    log:
        f"{LOGS}/fetch/flores200-{{version}}-{{code}}.log",
    retries: 3
    params:
        evalset="flores200",
        source=EXPERIMENT.sources["flores200"],
        flags=[],
        out=f"{DATA}/evalsets/flores200/{{version}}",
        costs=f"{COSTS}/data/fetch-evalset/flores200-{{code}}.json",
    shell:
        "ems fetch-evalset --evalset {params.evalset:q} --source={params.source:q}"
        " --code {wildcards.code:q} {params.flags:q} --out {params.out:q} --costs {params.costs:q}"
        " --log {log:q}"


use rule fetch_flores200 as fetch_sib200 with:
    input:
        from_source(*evalset_pattern("sib200")),
    output:
        evalset_pattern("sib200"),
    log:
        f"{LOGS}/fetch/sib200-{{version}}-{{code}}.log",
    params:
        evalset="sib200",
        source=EXPERIMENT.sources["sib200"],
        out=f"{DATA}/evalsets/sib200/{{version}}",
        costs=f"{COSTS}/data/fetch-evalset/sib200-{{code}}.json",


use rule fetch_flores200 as fetch_tatoeba with:
    input:
        f"{MIRROR}/manifest.json" if TATOEBA_EMBEDDED else [],
        from_source(*evalset_pattern("tatoeba")),
    output:
        evalset_pattern("tatoeba"),
    log:
        f"{LOGS}/fetch/tatoeba-{{version}}-{{code}}.log",
    params:
        evalset="tatoeba",
        source=(f"{MIRROR}/tatoeba" if TATOEBA_EMBEDDED else EXPERIMENT.sources["tatoeba"]),
        flags=["--generated"] if TATOEBA_EMBEDDED else [],
        out=f"{DATA}/evalsets/tatoeba/{{version}}",
        costs=f"{COSTS}/data/fetch-evalset/tatoeba-{{code}}.json",


rule fetch_evalset:
    input:
        from_source(UNIT_MANIFEST),
    output:
        UNIT_MANIFEST,
    log:
        f"{LOGS}/fetch/{{evalset}}-{{version}}-{{unit}}.log",
    retries: 1  # ems tries each connection again by itself (`downloads` in config.yaml)
    params:
        source=lambda wildcards: unit_source(EXPERIMENT, wildcards.evalset),
        out=folder_of_output,
        costs=f"{COSTS}/data/fetch-evalset/{{evalset}}-{{unit}}.json",
    shell:
        "ems fetch-evalset --evalset {wildcards.evalset:q} --source={params.source:q}"
        " --code {wildcards.unit:q} --out {params.out:q} --costs {params.costs:q} --log {log:q}"


rule evalkeys:
    input:
        [file for name in EXPERIMENT.decontaminate["against"] for file in evalset_files(name)],
    output:
        f"{RESULTS}/text/evalkeys.tsv",
    log:
        f"{LOGS}/evalkeys.log",
    params:
        **stage(
            "evalkeys",
            evalkeys_modules(EXPERIMENT.decontaminate["against"]),
            "text/evalkeys",
        ),
        folders=[f"{name}={evalset_folder(name)}" for name in EXPERIMENT.decontaminate["against"]],
    shell:
        "ems evalkeys {params.job:q} --evalset {params.folders:q} --out {output:q} --log {log:q}"
