# The benchmarks' own files, and the sentences of theirs that training must not see.
TATOEBA = f"{DATA}/evalsets/tatoeba/{EXPERIMENT.evalsets['tatoeba']['version']}"
TATOEBA_CODES = [
    EXPERIMENT.languages[code].tatoeba_v1 for code in EXPERIMENT.evalsets["tatoeba"]["languages"]
]
TATOEBA_FILES = expand(f"{TATOEBA}/tatoeba.{{code}}-eng.eng", code=TATOEBA_CODES) + [
    f"{TATOEBA}/tatoeba.{code}-eng.{code}" for code in TATOEBA_CODES
]
TATOEBA_EMBEDDED = EXPERIMENT.sources["tatoeba"] == EMBEDDED


rule fetch_tatoeba:
    input:
        f"{MIRROR}/manifest.json" if TATOEBA_EMBEDDED else [],
    output:
        f"{TATOEBA}/tatoeba.{{code}}-eng.{{code}}",
        f"{TATOEBA}/tatoeba.{{code}}-eng.eng",
    log:
        f"{LOGS}/fetch/tatoeba-{{code}}.log",
    retries: 3
    resources:
        mem_mb=800,
        runtime=60,
    params:
        source=(f"{MIRROR}/tatoeba" if TATOEBA_EMBEDDED else EXPERIMENT.sources["tatoeba"]),
        generated="--generated" if TATOEBA_EMBEDDED else "",
        out=folder_of_output,
    shell:
        "ems fetch-tatoeba --source {params.source:q} --code {wildcards.code} {params.generated}"
        " --out {params.out} --log {log}"


rule evalkeys:
    input:
        TATOEBA_FILES,
    output:
        f"{RESULTS}/text/evalkeys.tsv",
    log:
        f"{LOGS}/evalkeys.log",
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        expect=settings_hash("evalkeys"),
        code=source_hash("ems.text.clean"),
        experiment=EXPERIMENT.name,
        evalset=f"tatoeba={TATOEBA}",
    shell:
        "ems evalkeys --experiment {params.experiment} --expect {params.expect}"
        " --evalset {params.evalset:q} --out {output} --log {log}"
