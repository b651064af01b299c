"""A benchmark in one folder is planned, fetched, decontaminated against, scored and tabulated.

No other file of the project is edited; docs/extend.md has the folder.
"""

import json
import sys

import pytest
from conftest import Project, copy_project, planned
from made.cli import write_files
from made.corpora import translations, write_lines, write_opus
from made.experiments import MINIMAL, TRAINING_FREE
from made.tables import csv_rows

from ems.bench.scores import read_score_file

pytestmark = pytest.mark.slow

FOLDER = "extensions/benchmarks/toy"
TABLE, FIGURE = "results/tables/toy.tex", "results/figures/toy.svg"
REPORT = "results/own/reports/decontamination.json"
SCORES = "results/own/scores/char-ngram/toy.json"
KEYS = "results/own/text/evalkeys.tsv"
TARGETS = (REPORT, TABLE, FIGURE)


def make_project(folder, published):
    project = copy_project(folder / "project")
    assert len(write_files("A benchmark", project.folder)) == 6
    own = MINIMAL | {
        "sources": {"toy": str(published)},
        "corpora": [{"name": "Own", "version": "v1", "source": str(folder / "mirror/opus")}],
        "evalsets": {"toy": {"version": "v7"}},
        "decontaminate": {"against": ["toy"]},
        "systems": {"char-ngram": TRAINING_FREE},
        "benchmarks": ["toy"],
    }
    project.select("own", own)
    return project


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """A project that has run with the toy; the corpus has eight of its sentences."""
    folder = tmp_path_factory.mktemp("folder")
    items = list(translations(60, ["en", "de", "fr"], seed="folder", least=5, most=9))
    write_opus(folder / "mirror", "Own", "v1", items)
    new = list(translations(4, ["en", "de", "fr"], seed="new", least=5, most=9))
    for code in ("de", "fr"):
        lines = [f"{item[code]}\t{item['en']}" for item in [*items[:8], *new]]
        write_lines(folder / "published" / f"{code}.tsv", lines)
    project = make_project(folder, folder / "published")
    project.plan = project.snakemake("-n", "--printshellcmds", "all", REPORT)
    project.snakemake(*TARGETS)
    return project


def test_it_is_planned_and_fetched_from_where_the_experiment_says(project):
    source, data = project.folder.parent / "published", project.folder / "data/evalsets/toy/v7"
    assert f"--evalset toy --source={source} --code de.tsv" in project.plan
    for path in (*TARGETS, SCORES):
        assert path in project.plan
    manifest = json.loads((data / "de.tsv.manifest.json").read_text())
    assert (manifest["evalset"], manifest["read"], manifest["licence"]) == ("toy", 12, "CC0")


def test_its_sentences_are_removed_from_the_corpora(project):
    report = json.loads((project.folder / REPORT).read_text())
    assert report["against"] == ["toy"]
    assert [entry["by_benchmark"]["toy"]["pairs"] for entry in report["corpora"]] == [8, 8]
    assert [entry["kept"] for entry in report["corpora"]] == [52, 52]


def test_it_is_scored_by_its_settings_tabulated_and_plotted(project):
    file = read_score_file(project.folder / SCORES, "toy", "P@1")
    assert (file.version, file.protocol) == ("v7", {"beam": 3})
    assert [(row.source, row.count) for row in file.rows] == [("de", 12), ("fr", 12)]
    (row,) = csv_rows(project.folder / TABLE).values()
    assert list(row) == ["Model", "de", "fr", "Avg."]
    assert float(row["de"]) == pytest.approx(file.rows[0].value, abs=0.1)
    assert (project.folder / FIGURE).stat().st_size > 1000


def test_its_words_are_in_the_report(project):
    project.run(sys.executable, "-m", "ems", "report", "--experiment", "own", "--out", "page.html")
    html = (project.folder / "page.html").read_text(encoding="utf-8")
    assert "and their translations" in html
    assert "The toy as a figure." in html


def test_an_unknown_setting_is_an_error_that_suggests_its_own(project):
    project.edit("configs/own.yaml", "version: v7\n", "version: v7\n    protocol: {beams: 3}\n")
    done = project.run(sys.executable, "-m", "ems", "check", "--experiment", "own", expect=1)
    project.edit("configs/own.yaml", "\n    protocol: {beams: 3}\n", "\n")
    assert "evalsets.toy.protocol.beams: unknown key (did you mean beam?)" in done.stderr


SHOWN = {"table", "figure", "selected_table", "selected_figure"}


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("units.tsv", set()),
        ("table.py", SHOWN),
        ("score.py", {"bench", *SHOWN}),
        ("data.py", {"evalkeys", "bench", *SHOWN}),
    ],
)
def test_an_edited_file_of_the_folder_runs_its_readers_again(project, name, rules):
    path = project.folder / FOLDER / name
    before = path.read_text(encoding="utf-8")
    path.write_text(f"{before}\n" if name == "units.tsv" else f"{before}\nEDITED = True\n")
    jobs = planned(project.snakemake("-n", KEYS, TABLE, FIGURE))
    path.write_text(before, encoding="utf-8")
    assert jobs.keys() - {"total"} == rules
