"""The whole workflow on the tiny experiment: from nothing to tables, and what runs again when."""

import csv
import json
import os
import re
import shutil
import time

import pytest
import yaml
from conftest import copied, planned
from made.cli import commands, write_files

pytestmark = pytest.mark.slow
TATOEBA = "results/tables/tatoeba.tex"


def rows_of(project, name):
    with open(project.folder / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def plan(project, *words):
    return planned(project.snakemake("-n", *words))


def test_all_makes_every_table_and_figure_and_no_half_file(tiny_run):
    results = tiny_run.folder / "results"
    for table in ("tatoeba", "corpora", "decontamination", "filters", "vocabulary"):
        assert (results / f"tables/{table}.tex").read_text().count(r"\toprule") == 1
    models = [row["Model"] for row in rows_of(tiny_run, "results/tables/tatoeba.csv")]
    assert set(models) >= {"ems", "untrained", "char-ngram"}
    names = ("cleaning", "tatoeba", "pairs", "learning", "learning_languages")
    figures = [*(f"figures/{name}" for name in names), "tiny/costs/summary/learning"]
    assert all((results / f"{figure}.svg").stat().st_size > 5000 for figure in figures)
    assert (results / "tiny/costs/summary/costs.tex").read_text().count(r"\toprule") == 1
    assert not list(tiny_run.folder.rglob("*.part"))


def test_every_job_leaves_a_log_that_says_what_came_out(tiny_run):
    logs = sorted((tiny_run.folder / "results/tiny/logs").rglob("*.log"))
    assert len(logs) > 20
    for log in logs:
        lines = log.read_text().splitlines()
        assert lines[0].split(maxsplit=1)[1].startswith("ems "), log
        assert len(lines) > 1, log


def test_every_job_that_counts_leaves_its_costs_and_the_summary_adds_them_up(tiny_run):
    folder = tiny_run.folder / "results/tiny/costs"
    made = (folder / "summary/costs.csv").stat().st_mtime  # jobs of other tests came later
    paths = [path for path in folder.rglob("*.json") if path.stat().st_mtime <= made]
    jobs = [json.loads(path.read_text()) for path in paths]
    stages = {"demo-mirror", "fetch", "fetch-evalset", "evalkeys", "prepare", "sample"}
    stages |= {"vocabulary", "shards", "train", "fit", "bench"}
    assert {job["stage"] for job in jobs} == stages
    for job in jobs:
        assert 0 < job["cpu_seconds"] < 600, job
        assert 5 < job["max_rss_mb"] < 4000, job
    *_, total = rows_of(tiny_run, folder / "summary/costs.csv")
    assert total["Jobs"] == str(len(jobs))
    losses = (tiny_run.folder / "results/tiny/models/ems/losses.jsonl").read_text().splitlines()
    times = (folder / "train/ems.times.jsonl").read_text().splitlines()
    assert [json.loads(row)["step"] for row in times] == [json.loads(row)["step"] for row in losses]


def test_the_report_of_snakemake_is_made_of_the_run(finished):
    finished.snakemake("--report", "results/workflow.html")
    page = (finished.folder / "results/workflow.html").read_text()
    assert "tatoeba" in page
    assert "Experiment <strong>tiny</strong> of EMS" in page


def test_results_from_the_future_stop_the_workflow_until_they_are_set_back(finished):
    path = finished.folder / "results/tiny/tables/tatoeba.csv"
    tomorrow = time.time() + 86_400
    os.utime(path, (tomorrow, tomorrow))
    output = finished.snakemake("-n", "all", expect=1)
    assert "tables/tatoeba.csv: written 24.0 hours in the future" in output
    finished.run("sh", "-c", re.search("back: `(find [^`]+)`", output)[1])
    finished.snakemake("all")


def test_another_experiment_is_one_word_away_and_nothing_leaks(finished):
    """`other` has another language pair and system; both experiments keep their results."""
    text = (finished.folder / "configs/tiny.yaml").read_text()
    for old, new in (
        ("[en, de, zh, ja]", "[en, de]"),
        ("  ems: {}\n", "  another: {train: {steps: 5}}\n"),
        ("  untrained: {train: {steps: 0, threads: 2}}", ""),
        ("  base: ems\n", "  base: another\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (finished.folder / "configs/other.yaml").write_text(text)
    before = finished.tables()
    own = (finished.folder / "results/tiny/tables/tatoeba.csv").read_bytes()
    finished.snakemake("--config", "experiment=other", "--", "results/tables/tatoeba.tex")
    assert (finished.folder / "results/tiny/tables/tatoeba.csv").read_bytes() == own
    first, *_ = (finished.folder / "results/tables/tatoeba.tex").read_text().splitlines()
    assert first == "% Experiment other: a copy of results/other/tables/tatoeba.tex"
    table = (finished.folder / "results/tables/tatoeba.csv").read_text()
    assert "another" in table
    assert "\nems," not in table
    model = json.loads((finished.folder / "results/other/models/another/model.json").read_text())
    assert model["training"]["system"]["train"]["steps"] == 5
    output = finished.snakemake("all")
    made = re.findall(r"^(?:local)?rule (\w+):", output, re.MULTILINE)
    assert sorted(made) == ["all", "selected_table"]
    assert finished.tables() == before
    words = ("--config", "experiment=other", "--", TATOEBA)
    assert plan(finished, *words) == {"selected_table": 1, "total": 1}


def test_a_missing_model_is_made_again_though_its_scores_are_there(finished):
    """Snakemake deletes a model before the job that makes it again, and this job may die."""
    model = finished.folder / "results/tiny/models/char-ngram"
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    shutil.rmtree(model)
    assert "Nothing to be done" in finished.snakemake("-n", TATOEBA)
    assert planned(finished.snakemake("all"))["fit"] == 1
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_a_sweep_is_trained_only_when_its_table_is_asked_for(finished):
    models = finished.folder / "results/tiny/models"
    ordinary = {path.name for path in models.glob("[!.]*")}
    assert ordinary == {"ems", "untrained", "char-ngram"}
    before = finished.tables()
    finished.snakemake("results/tables/sweep.tex")
    swept = {path.name for path in models.glob("[!.]*")} - ordinary
    assert swept == {"ems.chosen", "ems.layers-2", "ems.contrastive.temperature-0.5"}
    rows = rows_of(finished, "results/tables/sweep.csv")
    assert [row["Value"] for row in rows] == ["1", "2", "0.1", "0.5"]
    losses = (models / "ems.layers-2/losses.jsonl").read_text().splitlines()
    assert rows[1]["Loss"] == f"{json.loads(losses[-1])['total']:.3f}"
    assert "Nothing to be done" in finished.snakemake("all", "results/tables/sweep.tex")
    tables = finished.tables()
    assert {name: tables[name] for name in before} == before


def test_a_fused_system_is_fitted_alone_and_again_when_its_encoder_changes(finished):
    ngrams = "  char-ngram: {kind: char-ngram}\n"
    both = "  both: {kind: fused, of: ems, ngrams: {buckets: 512}}\n"
    finished.edit("configs/tiny.yaml", ngrams, ngrams + both)
    expected = {"fit": 1, "bench": 1, "table": 1, "selected_table": 1, "total": 4}
    assert plan(finished, TATOEBA) == expected
    finished.snakemake(TATOEBA)
    models = [row["Model"] for row in rows_of(finished, "results/tables/tatoeba.csv")]
    assert models == ["ems", "untrained", "char-ngram", "both"]
    about = json.loads((finished.folder / "results/tiny/models/both/model.json").read_text())
    assert (about["of"]["model"], len(about["grid"])) == ("../ems", 118)
    assert "Nothing to be done" in finished.snakemake(TATOEBA)
    finished.edit("configs/tiny.yaml", "learning_rate: 0.003", "learning_rate: 0.002")
    again = {"train": 2, "fit": 1, "bench": 3, "table": 1, "selected_table": 1, "total": 8}
    assert plan(finished, TATOEBA) == again


def test_a_changed_setting_or_line_of_training_reruns_training_and_the_stages_after_it(finished):
    text_path = {"fetch", "prepare", "vocabulary", "shard"}
    finished.edit("configs/tiny.yaml", "learning_rate: 0.003", "learning_rate: 0.002")
    rules = plan(finished, "all").keys()
    assert {"train", "bench", "table", "figure", "costs"} <= rules
    assert not rules & text_path
    finished.edit("configs/tiny.yaml", "learning_rate: 0.002", "learning_rate: 0.003")
    assert "train" not in plan(finished, "all")
    step = finished.folder / "ems/train/step.py"
    source = step.read_text()
    step.write_text(f"{source}\nADDED = 1\n")
    rules = plan(finished, "all").keys()
    assert "train" in rules
    assert not rules & text_path
    step.write_text(source)


def test_a_wrong_setting_is_an_error_before_any_job(fresh):
    fresh.edit("configs/tiny.yaml", "  steps: 60\n", "  stepz: 60\n")
    output = fresh.snakemake("all", expect=1)
    assert "train.stepz: unknown key (did you mean steps?)" in output
    assert "Traceback" not in output
    assert not (fresh.folder / "results").exists()


# --- recipes of docs/extend.md; other tests run those for benchmarks, objectives and segmenters


def write_mine(recipe, folder):
    """Write configs/mine.yaml: tiny, with the part that a recipe gives."""
    write_files(recipe, folder)
    tiny = yaml.safe_load((folder / "configs/tiny.yaml").read_text(encoding="utf-8"))
    part = yaml.safe_load((folder / "configs/mine.part.yaml").read_text(encoding="utf-8"))
    (folder / "configs/mine.yaml").write_text(yaml.safe_dump({**tiny, **part}))


def test_the_recipe_for_a_corpus_and_a_language_makes_segmented_pairs(finished):
    write_mine("A corpus", finished.folder)
    *prepare, check, run = commands("A corpus")
    for command in prepare:
        finished.run("bash", "-c", command)
    done = finished.run("bash", "-c", check)
    assert "3 languages, train Demo/v1, train Mine/own" in done.stderr
    finished.run("bash", "-c", run)
    path = finished.folder / "results/mine/text/segmented/Mine/own/cy-en.tsv"
    pairs = path.read_text().splitlines()
    assert len(pairs) == 3
    assert pairs[1].split("\t")[:2] == ["ble mae ' r orsaf ?", "where is the station ?"]


def test_the_recipe_for_a_study_makes_a_table_a_figure_and_costs(finished):
    write_mine("A study", finished.folder)
    (run,) = commands("A study")
    finished.run("bash", "-c", run)
    rows = rows_of(finished, "results/tables/depth.csv")
    columns = ["Layers", "Params.", "Tatoeba de->en", "Tatoeba en->de", "Tatoeba Avg."]
    assert [list(row) for row in rows] == [columns, columns]
    assert [row["Layers"] for row in rows] == ["1", "2"]
    assert int(rows[0]["Params."]) < int(rows[1]["Params."])
    costs = "results/mine/costs/summary/depth.csv"
    finished.run("bash", "-c", run.replace("results/tables/depth.tex", costs))
    for row in rows_of(finished, costs):
        assert float(row["T (min)"]) > 0
        assert int(row["M (MB)"]) > 10
    finished.run("bash", "-c", run.replace("tables/depth.tex", "figures/depth.svg"))
    assert (finished.folder / "results/figures/depth.png").stat().st_size > 1000
    done = finished.run("bash", "-c", run.replace("-- results/tables/depth.tex", "-n -- all"))
    assert "results/tables/tatoeba.tex" in done.stdout


# --- exports

OWN = "results/own"
README = f"{OWN}/exports/ems/README.md"


@pytest.fixture(scope="module")
def exported(tiny_run, tmp_path_factory):
    """Export from a project whose experiment is tiny with the segmenter `unicode`."""
    pytest.importorskip("onnxruntime")
    project = copied(tiny_run, tmp_path_factory.mktemp("export") / "project")
    own = yaml.safe_load((project.folder / "configs/tiny.yaml").read_text(encoding="utf-8"))
    own["segmenters"] = {"default": "unicode"}
    own["export"] = {"systems": ["ems"], "onnx": True}
    project.select("own", own)
    project.snakemake("exports")
    return project


def test_the_card_of_an_export_has_scores_corpora_costs_and_the_identity_of_the_run(exported):
    card = (exported.folder / README).read_text(encoding="utf-8")
    names = ("models/ems/model.json", "reports/decontamination.json")
    model, report = (json.loads((exported.folder / OWN / name).read_text()) for name in names)
    train = [entry for entry in report["corpora"] if entry["role"] == "train"]
    assert model["identity"] in card
    assert f"{sum(entry['kept'] for entry in train):,} |" in card
    assert f"{sum(entry['removed']['evaluation'] for entry in train):,} pairs were removed" in card
    assert "| Tatoeba | P@1 |" in card
    assert "Cost of training: " in card
    assert (exported.folder / OWN / "exports/ems/onnx/model.onnx").is_file()


def test_each_exported_system_is_a_target_that_is_made_once(exported):
    assert plan(exported, "exports") == {}
    assert plan(exported, README.replace("ems", "untrained"))["export"] == 1
