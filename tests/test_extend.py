"""Laws of docs/extend.md: its recipes for a corpus, a language and a study run as they stand there.

The other recipes are run by test_benchmark_folder, test_objective_files and test_segmenter_files.
"""

import csv

import yaml
from made.recipes import commands, write_files


def write_mine(recipe, folder):
    """configs/mine.yaml: tiny, with the part that a recipe gives."""
    write_files(recipe, folder)
    tiny = yaml.safe_load((folder / "configs/tiny.yaml").read_text(encoding="utf-8"))
    part = yaml.safe_load((folder / "configs/mine.part.yaml").read_text(encoding="utf-8"))
    (folder / "configs/mine.yaml").write_text(yaml.safe_dump({**tiny, **part}))


def test_a_corpus_and_a_language_of_the_users_own_become_segmented_pairs(finished):
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


def test_a_study_of_the_users_own_trains_its_systems_and_is_a_table_a_figure_and_costs(finished):
    write_mine("A study", finished.folder)
    (run,) = commands("A study")
    finished.run("bash", "-c", run)
    table = finished.folder / "results/tables/depth.csv"
    rows = list(csv.DictReader(table.open(encoding="utf-8")))
    columns = ["Layers", "Params.", "Tatoeba de->en", "Tatoeba en->de", "Tatoeba Avg."]
    assert [list(row) for row in rows] == [columns, columns]
    assert [row["Layers"] for row in rows] == ["1", "2"]
    assert int(rows[0]["Params."]) < int(rows[1]["Params."])
    costs = "results/mine/costs/summary/depth.csv"
    finished.run("bash", "-c", run.replace("results/tables/depth.tex", costs))
    rows = list(csv.DictReader((finished.folder / costs).open(encoding="utf-8")))
    assert all(float(row["T (min)"]) > 0 and int(row["M (MB)"]) > 10 for row in rows)
    finished.run("bash", "-c", run.replace("tables/depth.tex", "figures/depth.svg"))
    assert (finished.folder / "results/figures/depth.png").stat().st_size > 1000
    plan = finished.run("bash", "-c", run.replace("-- results/tables/depth.tex", "-n -- all"))
    assert "results/tables/tatoeba.tex" in plan.stdout
