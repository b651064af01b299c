# Scores -> LaTeX and figures, of the selected experiment; ems says which it has, and of which files.
SOURCES = made_of(tables(), EXPERIMENT)
TABLES = [name for name in SOURCES if name not in ASKED]
FIGURE_SOURCES = made_of(figures(), EXPERIMENT)
FIGURES = list(FIGURE_SOURCES)
TIMED_SOURCES = made_of(timed(), EXPERIMENT)
TIMED = [
    f"{COSTS}/summary/{name}.{'tex' if name == 'ablation' else 'svg'}" for name in TIMED_SOURCES
]
SCORED = [path for name in EXPERIMENT.benchmarks for path in scores(EXPERIMENT, name)]


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
        code=lambda wildcards: source_of(table_modules(wildcards.table)),
        experiment=EXPERIMENT.name,
        report=lambda wildcards: tables()[wildcards.table].shown.report,
    shell:
        "ems table {wildcards.table:q} --experiment {params.experiment:q}"
        " --expect {params.expect:q} --sources {input:q} --out {output.tex:q} --log {log:q}"


rule figure:
    input:
        lambda wildcards: FIGURE_SOURCES[wildcards.figure],
    output:
        svg=report(
            "results/figures/{figure}.svg",
            caption="../report/figure.rst",
            category="Figures",
            labels=lambda wildcards: {"figure": figures()[wildcards.figure].shown.caption},
        ),
        png="results/figures/{figure}.png",
    log:
        f"{LOGS}/figure/{{figure}}.log",
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        expect=settings_hash("tables"),
        code=lambda wildcards: source_of(figure_modules(wildcards.figure)),
        experiment=EXPERIMENT.name,
        report=lambda wildcards: figures()[wildcards.figure].shown.report,
    shell:
        "ems figure {wildcards.figure:q} --experiment {params.experiment:q}"
        " --expect {params.expect:q} --sources {input:q} --out {output.svg:q} --log {log:q}"


# What the run cost is not among the tables: it differs from run to run, they do not.
rule costs:
    input:
        SCORED,
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
        expect=settings_hash("tables"),
        code=source_hash("ems.tables"),
        experiment=EXPERIMENT.name,
        folder=lambda wildcards, output: str(Path(output.tex).parents[1]),
    shell:
        "ems costs --experiment {params.experiment:q} --expect {params.expect:q}"
        " --folder {params.folder:q} --out {output.tex:q} --log {log:q}"


rule timed_figure:
    input:
        lambda wildcards: TIMED_SOURCES[wildcards.timed],
    output:
        svg=report(
            f"{COSTS}/summary/{{timed}}.svg",
            caption="../report/timed.rst",
            category="Costs",
            labels=lambda wildcards: {"figure": timed()[wildcards.timed].shown.caption},
        ),
        png=f"{COSTS}/summary/{{timed}}.png",
    log:
        f"{LOGS}/timed/{{timed}}-figure.log",
    wildcard_constraints:
        timed="learning|tradeoff",
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        expect=settings_hash("tables"),
        code=source_hash("ems.tables"),
        experiment=EXPERIMENT.name,
        times=expand(f"{COSTS}/train/{{system}}.times.jsonl", system=priced(EXPERIMENT)),
        out=lambda wildcards, output: output[0],
        report=lambda wildcards: timed()[wildcards.timed].shown.report,
    shell:
        "ems timed {wildcards.timed:q} --experiment {params.experiment:q} --expect {params.expect:q}"
        " --sources {input:q} --times {params.times:q} --out {params.out:q} --log {log:q}"


use rule timed_figure as timed_table with:
    input:
        TIMED_SOURCES.get("ablation", []),
    output:
        tex=f"{COSTS}/summary/{{timed}}.tex",
        csv=report(
            f"{COSTS}/summary/{{timed}}.csv",
            caption="../report/timed.rst",
            category="Costs",
            labels={"table": "{timed}"},
        ),
        md=f"{COSTS}/summary/{{timed}}.md",
    log:
        f"{LOGS}/timed/{{timed}}-table.log",
    wildcard_constraints:
        timed="ablation",


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
        captions=[f"{table}={caption(tables()[table].shown)}" for table in TABLES],
        code=source_hash("ems.tables"),
    shell:
        "ems pdf --tables {input:q} --caption {params.captions:q} --out {output:q} --log {log:q}"
