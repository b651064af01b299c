# Scores -> tables and figures; ems lists the outputs of the experiment and their inputs. Each experiment has its own in
# its folder; results/tables and results/figures are copies for the selected experiment.


rule table:
    input:
        job.sources,
    output:
        tex=f"{RESULTS}/tables/{{table}}.tex",
        csv=shown(f"{RESULTS}/tables/{{table}}.csv", "Tables", {"table": "{table}"}),
        md=f"{RESULTS}/tables/{{table}}.md",
    log:
        f"{LOGS}/table/{{table}}.log",
    params:
        **w.stage("tables", job.table_modules),
    shell:
        "ems table {wildcards.table:q} {params.settings:q} --sources {input:q} --out {output.tex:q} --log {log:q}"


rule figure:
    input:
        job.sources,
    output:
        svg=shown(f"{RESULTS}/figures/{{figure}}.svg", "Figures", {"figure": "{figure}"}),
        png=f"{RESULTS}/figures/{{figure}}.png",
        pdf=f"{RESULTS}/figures/{{figure}}.pdf",
    log:
        f"{LOGS}/figure/{{figure}}.log",
    params:
        **w.stage("tables", job.table_modules),
    shell:
        "ems figure {wildcards.figure:q} {params.settings:q} --sources {input:q} --out {output.svg:q} --log {log:q}"


# Costs differ from run to run, so they are not among the tables.
rule costs:
    input:
        w.all_scores,
    output:
        tex=f"{COSTS}/summary/costs.tex",
        csv=shown(f"{COSTS}/summary/costs.csv", "Costs", {"table": "costs"}),
        md=f"{COSTS}/summary/costs.md",
    log:
        f"{LOGS}/costs.log",
    params:
        **w.stage("tables", ["ems.tables"]),
        folder=subpath(output.tex, ancestor=2),
    shell:
        "ems costs {params.settings:q} --folder {params.folder:q} --out {output.tex:q} --log {log:q}"


rule timed_figure:
    input:
        sources=job.sources,
        times=job.times,
    output:
        svg=shown(f"{COSTS}/summary/{{timed}}.svg", "Costs", {"figure": "{timed}"}),
        png=f"{COSTS}/summary/{{timed}}.png",
        pdf=f"{COSTS}/summary/{{timed}}.pdf",
    log:
        f"{LOGS}/timed/{{timed}}-figure.log",
    wildcard_constraints:
        timed=one_of(w.timed_figures),
    params:
        **w.stage("tables", ["ems.tables"]),
        out=subpath(output[0]),
    shell:
        "ems timed {wildcards.timed:q} {params.settings:q} --sources {input.sources:q} --times {input.times:q} --out"
        " {params.out:q} --log {log:q}"


use rule timed_figure as timed_table with:
    output:
        tex=f"{COSTS}/summary/{{timed}}.tex",
        csv=shown(f"{COSTS}/summary/{{timed}}.csv", "Costs", {"table": "{timed}"}),
        md=f"{COSTS}/summary/{{timed}}.md",
    log:
        f"{LOGS}/timed/{{timed}}-table.log",
    wildcard_constraints:
        timed=one_of(w.timed_tables),


# Right and wrong answers of the best system, and the page that shows them with everything else.
rule examples:
    input:
        scores=w.learned,
        models=w.learned_models,
        evalsets=w.evalset_files(*w.experiment.evalsets),
    output:
        w.examples,
    log:
        f"{LOGS}/examples.log",
    resources:
        **per_attempt(mem_mb=4000),
        runtime=60,
    params:
        **w.stage("tables", job.examples_modules()),
        folders=w.evalset_folders(w.experiment.evalsets),
    shell:
        "ems examples {params.settings:q} --scores {input.scores:q} --evalset {params.folders:q} --out {output:q}"
        " --log {log:q}"


rule report_page:
    input:
        w.reported,
        w.all_scores,
        w.losses,
        w.decontamination,
        w.examples,
    output:
        w.report,
    log:
        f"{LOGS}/report.log",
    params:
        **w.stage("tables", ["ems.tables"]),
    shell:
        "ems report {params.settings:q} --out {output:q} --log {log:q}"


use rule report_page as selected_report with:
    output:
        "results/report.html",
    log:
        f"{LOGS}/selected/report.log",


rule tables_pdf:
    input:
        job.pdf_tables,
    output:
        f"{RESULTS}/tables.pdf",
    log:
        f"{LOGS}/tables_pdf.log",
    params:
        code=source_of(["ems.tables"]),
        captions=w.captions,
    shell:
        "ems pdf --tables {input:q} --caption {params.captions:q} --out {output:q} --log {log:q}"


# The numbers that `dvc metrics` and `dvc plots` show. Losses are files next to its output: Snakemake would put one
# of its own into a folder, which `dvc plots` cannot read.
rule metrics:
    input:
        scores=w.all_scores,
        losses=w.losses,
    output:
        f"{RESULTS}/metrics/scores.json",
    log:
        f"{LOGS}/metrics.log",
    params:
        code=source_of(["ems.tables.logs"]),
        out=subpath(output[0], parent=True),
    shell:
        "ems metrics --scores {input.scores:q} --losses {input.losses:q} --out {params.out:q} --log {log:q}"


# Copies of the selected experiment's outputs. Another selection makes the copies again, and nothing else.
rule selected_table:
    input:
        multiext(f"{RESULTS}/tables/{{table}}", ".tex", ".csv", ".md"),
    output:
        multiext("results/tables/{table}", ".tex", ".csv", ".md"),
    log:
        f"{LOGS}/selected/{{table}}-table.log",
    params:
        experiment=w.name,
        code=source_of(["ems.tables.table"]),
        out=subpath(output[0], parent=True),
    shell:
        "ems select --experiment {params.experiment:q} --sources {input:q} --out {params.out:q} --log {log:q}"


use rule selected_table as selected_figure with:
    input:
        multiext(f"{RESULTS}/figures/{{figure}}", ".svg", ".png", ".pdf"),
    output:
        multiext("results/figures/{figure}", ".svg", ".png", ".pdf"),
    log:
        f"{LOGS}/selected/{{figure}}-figure.log",


use rule selected_table as selected_pdf with:
    input:
        f"{RESULTS}/tables.pdf",
    output:
        "results/tables.pdf",
    log:
        f"{LOGS}/selected/pdf.log",
