# Scores -> LaTeX and figures, of the selected experiment; ems says which it has, and of which files. Each experiment
# keeps its own in its folder; results/tables and results/figures have copies of the selected one's.
OUTPUTS = outputs_of(EXPERIMENT)
SOURCES = made_of(OUTPUTS["table"], EXPERIMENT)
TABLES = [name for name in SOURCES if name not in ASKED]
FIGURES = made_of(OUTPUTS["figure"], EXPERIMENT)
TIMED = made_of(OUTPUTS["timed"], EXPERIMENT)
TIMED_TABLES = [name for name in TIMED if name in SOURCES]  # the others are figures
TIMED_FIGURES = [name for name in TIMED if name not in SOURCES]


rule table:
    input:
        lambda wildcards: SOURCES[wildcards.table],
    output:
        tex=f"{RESULTS}/tables/{{table}}.tex",
        csv=shown(f"{RESULTS}/tables/{{table}}.csv", "Tables", {"table": "{table}"}),
        md=f"{RESULTS}/tables/{{table}}.md",
    log:
        f"{LOGS}/table/{{table}}.log",
    wildcard_constraints:
        table=one_of(SOURCES),
    params:
        **stage("tables", lambda wildcards: table_modules(wildcards.table, EXPERIMENT)),
        report=lambda wildcards: OUTPUTS["table"][wildcards.table].shown.report,
    shell:
        "ems table {wildcards.table:q} {params.settings:q} --sources {input:q} --out {output.tex:q}"
        " --log {log:q}"


rule figure:
    input:
        lambda wildcards: FIGURES[wildcards.figure],
    output:
        svg=shown(
            f"{RESULTS}/figures/{{figure}}.svg",
            "Figures",
            lambda wildcards: {"figure": OUTPUTS["figure"][wildcards.figure].shown.caption},
        ),
        png=f"{RESULTS}/figures/{{figure}}.png",
    log:
        f"{LOGS}/figure/{{figure}}.log",
    wildcard_constraints:
        figure=one_of(FIGURES),
    params:
        **stage("tables", lambda wildcards: figure_modules(wildcards.figure, EXPERIMENT)),
        report=lambda wildcards: OUTPUTS["figure"][wildcards.figure].shown.report,
    shell:
        "ems figure {wildcards.figure:q} {params.settings:q} --sources {input:q} --out {output.svg:q}"
        " --log {log:q}"


# What the run cost is not among the tables: it differs from run to run, they do not.
rule costs:
    input:
        [path for name in EXPERIMENT.benchmarks for path in scores(EXPERIMENT, name)],
    output:
        tex=f"{COSTS}/summary/costs.tex",
        csv=shown(f"{COSTS}/summary/costs.csv", "Costs", {"table": "costs"}, "costs"),
        md=f"{COSTS}/summary/costs.md",
    log:
        f"{LOGS}/costs.log",
    params:
        **stage("tables", ["ems.tables"]),
        folder=lambda wildcards, output: str(Path(output.tex).parents[1]),
    shell:
        "ems costs {params.settings:q} --folder {params.folder:q} --out {output.tex:q} --log {log:q}"


rule timed_figure:
    input:
        sources=lambda wildcards: TIMED[wildcards.timed],
        times=lambda wildcards: times_of(EXPERIMENT, TIMED[wildcards.timed]),
    output:
        svg=shown(
            f"{COSTS}/summary/{{timed}}.svg",
            "Costs",
            lambda wildcards: {"figure": OUTPUTS["timed"][wildcards.timed].shown.caption},
        ),
        png=f"{COSTS}/summary/{{timed}}.png",
    log:
        f"{LOGS}/timed/{{timed}}-figure.log",
    wildcard_constraints:
        timed=one_of(TIMED_FIGURES),
    params:
        **stage("tables", ["ems.tables"]),
        out=lambda wildcards, output: output[0],
        report=lambda wildcards: OUTPUTS["timed"][wildcards.timed].shown.report,
    shell:
        "ems timed {wildcards.timed:q} {params.settings:q} --sources {input.sources:q}"
        " --times {input.times:q} --out {params.out:q} --log {log:q}"


use rule timed_figure as timed_table with:
    output:
        tex=f"{COSTS}/summary/{{timed}}.tex",
        csv=shown(f"{COSTS}/summary/{{timed}}.csv", "Costs", {"table": "{timed}"}),
        md=f"{COSTS}/summary/{{timed}}.md",
    log:
        f"{LOGS}/timed/{{timed}}-table.log",
    wildcard_constraints:
        timed=one_of(TIMED_TABLES),


rule tables_pdf:
    input:
        tables_for_pdf,
    output:
        f"{RESULTS}/tables.pdf",
    log:
        f"{LOGS}/tables_pdf.log",
    params:
        code=source_of(["ems.tables"]),
        captions=captions(EXPERIMENT, TABLES),
    shell:
        "ems pdf --tables {input:q} --caption {params.captions:q} --out {output:q} --log {log:q}"


# The numbers that `dvc metrics` and `dvc plots` show. Losses go into files beside its output: Snakemake would put one
# of its own into a folder, which `dvc plots` cannot read.
rule metrics:
    input:
        scores=[path for name in EXPERIMENT.benchmarks for path in scores(EXPERIMENT, name)],
        losses=[
            f"{RESULTS}/models/{system}/losses.jsonl" for system in SYSTEMS if system in TRAINED
        ],
    output:
        f"{RESULTS}/metrics/scores.json",
    log:
        f"{LOGS}/metrics.log",
    params:
        code=source_of(["ems.tables.metrics"]),
        out=folder_of_output,
    shell:
        "ems metrics --scores {input.scores:q} --losses {input.losses:q} --out {params.out:q}"
        " --log {log:q}"


# Copies of the selected experiment's outputs. Another selection makes the copies again, and nothing else.
rule selected_table:
    input:
        multiext(f"{RESULTS}/tables/{{table}}", ".tex", ".csv", ".md"),
    output:
        multiext("results/tables/{table}", ".tex", ".csv", ".md"),
    log:
        f"{LOGS}/selected/{{table}}-table.log",
    wildcard_constraints:
        table=one_of(SOURCES),
    params:
        experiment=EXPERIMENT.name,
        code=source_of(["ems.tables.table"]),
        out=folder_of_output,
    shell:
        "ems select --experiment {params.experiment:q} --sources {input:q} --out {params.out:q}"
        " --log {log:q}"


use rule selected_table as selected_figure with:
    input:
        multiext(f"{RESULTS}/figures/{{figure}}", ".svg", ".png"),
    output:
        multiext("results/figures/{figure}", ".svg", ".png"),
    log:
        f"{LOGS}/selected/{{figure}}-figure.log",
    wildcard_constraints:
        figure=one_of(FIGURES),


use rule selected_table as selected_pdf with:
    input:
        f"{RESULTS}/tables.pdf",
    output:
        "results/tables.pdf",
    log:
        f"{LOGS}/selected/pdf.log",
