# Scores -> LaTeX and figures, of the selected experiment.
TABLES = ["tatoeba", "corpora", "decontamination"]
CAPTIONS = {
    "tatoeba": "Tatoeba: P@1, mean of both directions.",
    "corpora": "Sentence pairs per language.",
    "decontamination": "Evaluation sentences found in the corpora and removed.",
}
REPORT = f"{RESULTS}/reports/decontamination.json"
SCORES = {
    "tatoeba": expand(f"{RESULTS}/scores/{{system}}/tatoeba.json", system=SYSTEMS),
    "corpora": [REPORT],
    "decontamination": [REPORT],
}


rule table:
    input:
        lambda wildcards: SCORES[wildcards.table],
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


rule figure_tatoeba:
    input:
        SCORES["tatoeba"],
    output:
        svg=report(
            "results/figures/tatoeba.svg",
            caption="../report/tatoeba_figure.rst",
            category="Figures",
            labels={"figure": "P@1 per language"},
        ),
        png="results/figures/tatoeba.png",
    log:
        f"{LOGS}/figure_tatoeba.log",
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=source_hash("ems.tables"),
        experiment=EXPERIMENT.name,
    shell:
        "ems figure --sources {input} --out {output.svg} --log {log}"


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
