# Scores -> LaTeX and figures, of the selected experiment.
CAPTIONS = {  # in the order of the papers
    "corpora": "Sentence pairs per language.",
    "decontamination": "Evaluation sentences found in the corpora and removed.",
    "filters": "Sentence pairs removed, by reason.",
    "vocabulary": "The subword vocabulary by language and by script.",
    "models": "The models: data and size.",
    "tatoeba": "Tatoeba: P@1, mean of both directions.",
    "tatoeba_unseen": "Tatoeba: P@1 of languages that were not trained on.",
    "flores": "FLORES-200: P@1 between languages other than English.",
    "bucc_missed": "Extracted pairs of BUCC 2018 that gold lacks.",
    "bucc2018": "BUCC 2018: F1 of mined translations.",
    "paracrawl": "ParaCrawl: P@1 among many candidates, mean of both directions.",
    "europarlxsr": "Europarl: P@1 among many candidates.",
    "mldoc": "MLDoc, zero-shot: accuracy, mean and standard deviation of the seeds.",
    "mldoc_bilingual": "MLDoc, zero-shot, a model for each pair: accuracy, mean and standard deviation of the seeds.",
    "cls": "Amazon reviews version 1, zero-shot: accuracy, mean and standard deviation of the seeds.",
    "marc": "Amazon reviews version 2, zero-shot: accuracy, mean and standard deviation of the seeds.",
    "xnli": "XNLI, learnt in English: accuracy, mean and standard deviation of the seeds.",
    "rcv2": "RCV2 headlines, zero-shot: accuracy, mean and standard deviation of the seeds.",
    "ablation": "What each component is worth.",
    "wordorder": "Cosine of two sentences with the same words in another order.",
    "ntrex": "NTREX, test part: P@1, mean of both directions.",
    "sib200": "SIB-200, learnt in English: accuracy, mean and standard deviation of the seeds.",
    "counterfactual": "Amazon counterfactual sentences, learnt in English: accuracy.",
    "pawsx": "PAWS-X by cosine: accuracy and average precision.",
    "xsim": "FLORES-200: error rates of xsim and xsim++.",
}
LOSSES = f"{RESULTS}/models/{{system}}/losses.jsonl"
MODEL = f"{RESULTS}/models/{{system}}/model.json"
REPORT = f"{RESULTS}/reports/decontamination.json"
SCORES = {
    benchmark: expand(f"{RESULTS}/scores/{{system}}/{benchmark}.json", system=SYSTEMS)
    for benchmark in EXPERIMENT.benchmarks
}
if "tatoeba" in SCORES and any(EXPERIMENT.scores_unseen("tatoeba", name) for name in SYSTEMS):
    SCORES["tatoeba_unseen"] = SCORES["tatoeba"]
BILINGUAL = [name for name in SYSTEMS if any(name in of for of in EXPERIMENT.families.values())]
if "mldoc" in SCORES and BILINGUAL:
    SCORES["mldoc_bilingual"] = expand(f"{RESULTS}/scores/{{system}}/mldoc.json", system=BILINGUAL)
if "bucc2018" in SCORES:
    SCORES["bucc_missed"] = SCORES["bucc2018"][:1]  # of the first system
TABLE_OF = {"flores200": "flores", "xsimpp": "xsim"}  # of a benchmark, where it is not its name
OF_SCORES = {}
for benchmark, paths in SCORES.items():
    OF_SCORES.setdefault(TABLE_OF.get(benchmark, benchmark), []).extend(paths)
ABLATING = EXPERIMENT.learning(EXPERIMENT.ablated)
ABLATION = expand(
    f"{RESULTS}/scores/{{system}}/{{benchmark}}.json",
    system=ABLATING,
    benchmark=[name for name in ("tatoeba", "flores200", "mldoc") if name in SCORES],
)
ABLATED = len(ABLATING) > 1 and "tatoeba" in SCORES
SOURCES = {
    **OF_SCORES,
    **({"ablation": ABLATION} if ABLATED else {}),
    **{table: [REPORT] for table in ("corpora", "decontamination", "filters")},
    **({"models": [*expand(MODEL, system=LEARNING), REPORT]} if LEARNING else {}),
    **({"vocabulary": expand(VOCABULARY_REPORT, vocabulary=VOCABULARIES)} if VOCABULARIES else {}),
}
TABLES = [table for table in CAPTIONS if table in SOURCES]
SWEPT = dict.fromkeys(point.system for point in EXPERIMENT.sweep)
if SWEPT:  # not among TABLES, which `all` makes: only when asked for
    SOURCES["sweep"] = expand(LOSSES, system=SWEPT)
FIGURES = [
    *(["tatoeba", "pairs"] if "tatoeba" in SCORES else []),
    *(["ablation"] if ABLATED else []),
    *(["flores"] if "flores200" in SCORES else []),
    *(["learning"] if LEARNING else []),
    *(["learning_languages"] if LEARNING and EXPERIMENT.validation else []),
]
FIGURE_SOURCES = {
    "tatoeba": SCORES.get("tatoeba", []),
    "pairs": [*SCORES.get("tatoeba", []), REPORT],
    "ablation": [path for path in ABLATION if path.endswith("tatoeba.json")],
    "flores": SCORES.get("flores200", []),
    "learning": expand(LOSSES, system=LEARNING),
    "learning_languages": expand(LOSSES, system=LEARNING),
}
FIGURE_LABELS = {
    "tatoeba": "P@1 per language",
    "pairs": "P@1 against training pairs",
    "ablation": "What each change is worth",
    "flores": "P@1 between all languages",
    "learning": "Learning curves",
    "learning_languages": "Learning curves per language",
}
PRICED = list(dict.fromkeys([*LEARNING, *ABLATING]))  # systems that cost minutes
TIMED_FIGURES = {
    **({"learning": FIGURE_SOURCES["learning"]} if LEARNING else {}),
    **(
        {"tradeoff": expand(f"{RESULTS}/scores/{{system}}/tatoeba.json", system=PRICED)}
        if ABLATED
        else {}
    ),
}
TIMED_LABELS = {"learning": "Learning curves in time", "tradeoff": "P@1 against minutes"}
TIMED = [
    *(f"{COSTS}/summary/{name}.svg" for name in TIMED_FIGURES),
    *([f"{COSTS}/summary/ablation.tex"] if ABLATED else []),
]


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
        "ems figure {wildcards.figure:q} --experiment {params.experiment:q}"
        " --expect {params.expect:q} --sources {input:q} --out {output.svg:q} --log {log:q}"


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
        expect=settings_hash("tables"),
        code=source_hash("ems.tables"),
        experiment=EXPERIMENT.name,
        folder=lambda wildcards, output: str(Path(output.tex).parents[1]),
    shell:
        "ems costs --experiment {params.experiment:q} --expect {params.expect:q}"
        " --folder {params.folder:q} --out {output.tex:q} --log {log:q}"


rule timed_figure:
    input:
        lambda wildcards: TIMED_FIGURES[wildcards.timed],
    output:
        svg=report(
            f"{COSTS}/summary/{{timed}}.svg",
            caption="../report/timed.rst",
            category="Costs",
            labels=lambda wildcards: {"figure": TIMED_LABELS[wildcards.timed]},
        ),
        png=f"{COSTS}/summary/{{timed}}.png",
    log:
        f"{LOGS}/timed/{{timed}}-figure.log",
    wildcard_constraints:
        timed="|".join(TIMED_LABELS),
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        expect=settings_hash("tables"),
        code=source_hash("ems.tables"),
        experiment=EXPERIMENT.name,
        times=expand(f"{COSTS}/train/{{system}}.times.jsonl", system=PRICED),
        out=lambda wildcards, output: output[0],
    shell:
        "ems timed {wildcards.timed:q} --experiment {params.experiment:q} --expect {params.expect:q}"
        " --sources {input:q} --times {params.times:q} --out {params.out:q} --log {log:q}"


use rule timed_figure as timed_table with:
    input:
        ABLATION,
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
        captions=[f"{table}={CAPTIONS[table]}{told_where(table)}" for table in TABLES],
        code=source_hash("ems.tables"),
    shell:
        "ems pdf --tables {input:q} --caption {params.captions:q} --out {output:q} --log {log:q}"
