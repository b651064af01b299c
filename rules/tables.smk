# Scores -> LaTeX and figures, of the selected experiment.
CAPTIONS = {
    "tatoeba": "Tatoeba: P@1, mean of both directions.",
    "tatoeba_unseen": "Tatoeba: P@1 of languages that were not trained on.",
    "ntrex": "NTREX, test part: P@1, mean of both directions.",
    "corpora": "Sentence pairs per language.",
    "decontamination": "Evaluation sentences found in the corpora and removed.",
    "filters": "Sentence pairs removed, by reason.",
    "vocabulary": "The subword vocabulary by language and by script.",
}
LOSSES = f"{RESULTS}/models/{{system}}/losses.jsonl"
REPORT = f"{RESULTS}/reports/decontamination.json"
SCORES = {
    benchmark: expand(f"{RESULTS}/scores/{{system}}/{benchmark}.json", system=SYSTEMS)
    for benchmark in EXPERIMENT.benchmarks
}
if "tatoeba" in SCORES and UNSEEN in EXPERIMENT.spoken("tatoeba").values():
    SCORES["tatoeba_unseen"] = SCORES["tatoeba"]
SOURCES = {
    **SCORES,
    **{table: [REPORT] for table in ("corpora", "decontamination", "filters")},
    "vocabulary": [VOCABULARY_REPORT],
}
TABLES = [table for table in CAPTIONS if table in SOURCES]
SWEPT = dict.fromkeys(point.system for point in EXPERIMENT.sweep)
if SWEPT:  # not among TABLES, which `all` makes: only when asked for
    SOURCES["sweep"] = expand(LOSSES, system=SWEPT)
FIGURES = [
    *(["tatoeba", "pairs"] if "tatoeba" in SCORES else []),
    *(["learning"] if LEARNING else []),
    *(["learning_languages"] if LEARNING and EXPERIMENT.validation else []),
]
FIGURE_SOURCES = {
    "tatoeba": SCORES.get("tatoeba", []),
    "pairs": [*SCORES.get("tatoeba", []), REPORT],
    "learning": expand(LOSSES, system=LEARNING),
    "learning_languages": expand(LOSSES, system=LEARNING),
}
FIGURE_LABELS = {
    "tatoeba": "P@1 per language",
    "pairs": "P@1 against training pairs",
    "learning": "Learning curves",
    "learning_languages": "Learning curves per language",
}


rule table:
    input:
        lambda wildcards: SOURCES[wildcards.table],
    output:
        tex="results/tables/{table}.tex",
        csv=report(
            "results/tables/{table}.csv",
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}"},
        ),
        md="results/tables/{table}.md",
    log:
        f"{LOGS}/table/{{table}}.log",
    wildcard_constraints:
        table="|".join(SOURCES),
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        expect=settings_hash("tables"),
        code=source_hash("ems.tables"),
        experiment=EXPERIMENT.name,
    shell:
        "ems table {wildcards.table} --experiment {params.experiment}"
        " --expect {params.expect} --sources {input} --out {output.tex} --log {log}"


rule figure:
    input:
        lambda wildcards: FIGURE_SOURCES[wildcards.figure],
    output:
        svg=report(
            "results/figures/{figure}.svg",
            caption="../report/figure.rst",
            category="Figures",
            labels=lambda wildcards: {"figure": FIGURE_LABELS[wildcards.figure]},
        ),
        png="results/figures/{figure}.png",
    log:
        f"{LOGS}/figure/{{figure}}.log",
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        expect=settings_hash("tables"),
        code=source_hash("ems.tables"),
        experiment=EXPERIMENT.name,
    shell:
        "ems figure {wildcards.figure} --experiment {params.experiment}"
        " --expect {params.expect} --sources {input} --out {output.svg} --log {log}"


# What the run cost is not among the tables: it differs from run to run, they do not.
rule costs:
    input:
        [path for paths in SCORES.values() for path in paths],
    output:
        tex=f"{COSTS}/summary/costs.tex",
        csv=report(
            f"{COSTS}/summary/costs.csv",
            caption="../report/costs.rst",
            category="Costs",
            labels={"table": "costs"},
        ),
        md=f"{COSTS}/summary/costs.md",
    log:
        f"{LOGS}/costs.log",
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=source_hash("ems.tables"),
        folder=lambda wildcards, output: str(Path(output.tex).parents[1]),
    shell:
        "ems costs --folder {params.folder} --out {output.tex} --log {log}"


rule learning_in_time:
    input:
        FIGURE_SOURCES["learning"],
    output:
        svg=report(
            f"{COSTS}/summary/learning.svg",
            caption="../report/learning_in_time.rst",
            category="Costs",
            labels={"figure": "Learning curves in time"},
        ),
        png=f"{COSTS}/summary/learning.png",
    log:
        f"{LOGS}/learning_in_time.log",
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=source_hash("ems.tables"),
        times=expand(f"{COSTS}/train/{{system}}.times.jsonl", system=LEARNING),
    shell:
        "ems learning-in-time --sources {input} --times {params.times} --out {output.svg}"
        " --log {log}"


rule tables_pdf:
    input:
        tables_for_pdf,
    output:
        "results/tables.pdf",
    log:
        f"{LOGS}/tables_pdf.log",
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        captions=[f"{table}={CAPTIONS[table]}" for table in TABLES],
        code=source_hash("ems.tables"),
    shell:
        "ems pdf --tables {input} --caption {params.captions:q} --out {output} --log {log}"
