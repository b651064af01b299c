"""Laws of experiments next to each other: shared tables, copies, and the numbers that DVC reads."""

import json
import re

import pytest
from made.corpora import write_lines
from made.experiments import MINIMAL, Settings
from made.scores import write_scores
from made.tables import csv_rows

from ems.commands.cli import main
from ems.tables.compare import write_comparison
from ems.tables.logs import write_metrics
from ems.tables.table import write_selected

MEANS = {"one": {"ems": 50.0, "first": 60.0}, "two": {"ems": 70.0, "second": 80.0}}
FILES = {"deu": "1" * 16, "fra": "2" * 16}
LOG = [
    {"part": "validation", "step": 0, "pairs": 0, "xtr": 5.0, "total": 5.0, "p1": 1.5},
    {"part": "train", "step": 2, "pairs": 64, "xtr": 3.0, "total": 3.0, "lr": 0.1},
    {"part": "train", "step": 4, "pairs": 128, "xtr": 2.0, "total": 2.0, "lr": 0.2},
    {"part": "validation", "step": 4, "pairs": 128, "xtr": 2.5, "total": 2.5, "p1": 40.5},
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The experiments `one` and `two` with scores of their systems; both have `ems`."""
    settings = Settings(tmp_path)
    for name, means in MEANS.items():
        settings.write(MINIMAL | {"systems": {system: {} for system in means}}, name)
        for system, mean in means.items():
            write_scores(tmp_path / f"results/{name}/scores", system, {"deu": mean, "fra": mean})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def together(*words):
    return main(["table", "tatoeba", "--experiments", "one,two", "--out", "both.tex", *words])


def rescore(project, name, system, values, **changes):
    write_scores(project / f"results/{name}/scores", system, values, version="v1", **changes)


# --- a table of several experiments


def test_a_table_of_two_experiments_names_the_experiment_of_equal_names(project):
    assert together() == 0
    rows = {name: row["deu"] for name, row in csv_rows(project / "both.tex").items()}
    assert rows == {"one: ems": "50.0", "first": "60.0", "two: ems": "70.0", "second": "80.0"}
    assert r"\textbf{80.0}" in (project / "both.tex").read_text()
    assert main(["table", "tatoeba", "--experiment", "two", "--out", "own.tex"]) == 0
    assert list(csv_rows(project / "own.tex")) == ["ems", "second"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"version": "v2"}, "version"),
        ({"protocol": {"k": 4}}, "protocol"),
        ({"data_sha256": "ab"}, "data_sha256"),
        ({"data_sha256": "ab", "data_files": {"ita": "3" * 16}}, "data_sha256"),
        ({"data_sha256": "ab", "data_files": FILES | {"fra": "3" * 16}}, "data_sha256"),
    ],
)
def test_scores_of_other_data_are_refused(project, capsys, change, named):
    for system in ("ems", "first"):
        rescore(project, "one", system, {"deu": 1.0, "fra": 1.0}, data_files=FILES)
    write_scores(project / "results/two/scores", "second", {"deu": 1.0, "fra": 1.0}, **change)
    assert together() == 1
    assert f"cannot share a table; {named}:" in capsys.readouterr().err
    assert not (project / "both.tex").exists()


def test_an_experiment_of_fewer_languages_has_no_means(project):
    for system in ("ems", "first"):
        rescore(project, "one", system, {"deu": 1.0, "fra": 3.0}, data_files=FILES)
    fewer = {"deu": FILES["deu"], "ita": "9" * 16}
    for system in ("ems", "second"):
        rescore(project, "two", system, {"deu": 5.0}, data_sha256="ab", data_files=fewer)
    assert together() == 0
    rows = csv_rows(project / "both.tex")
    assert [rows["second"][name] for name in ("deu", "fra", "Avg.")] == ["5.0", "", ""]
    assert rows["one: ems"]["Avg."] == "2.0"
    folders = (project / f"results/{name}/scores/ems" for name in MEANS)
    assert re.search(r"deu \| +1\.0 \| +5\.0", write_comparison(*folders, every_row=True))


def test_a_language_that_one_experiment_does_not_train_on_is_a_dash(project):
    rescore(project, "two", "second", {"deu": 5.0, "fra": 6.0}, languages={"fra": "und"})
    assert together() == 0
    rows = csv_rows(project / "both.tex")
    assert (rows["second"]["fra"], rows["first"]["fra"]) == ("", "60.0")


def test_a_missing_score_file_is_an_error_with_its_command(project, capsys):
    (project / "Snakefile").touch()
    path = "results/two/scores/second/tatoeba.json"
    (project / path).unlink()
    assert together() == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"snakemake --config experiment=two -- {path}" in last


# --- copies of the selected experiment


def test_a_copy_names_its_experiment_and_a_csv_is_unchanged(tmp_path):
    content = {".tex": "% note\n", ".md": "| a |\n", ".csv": "a,b\n", ".svg": "<svg/>\n"}
    paths = [tmp_path / f"own/t{suffix}" for suffix in (*content, ".png", ".pdf")]
    (tmp_path / "own").mkdir()
    for path in paths:
        path.write_bytes(content.get(path.suffix, "\x89PNG").encode())
    write_selected(paths, tmp_path / "copy", "a--b")
    copies = {path.suffix: (tmp_path / "copy" / path.name).read_bytes() for path in paths}
    line = f"Experiment a--b: a copy of {tmp_path}/own/t".encode()
    assert copies[".tex"] == b"% " + line + b".tex\n% note\n"
    assert copies[".md"] == line + b".md\n\n| a |\n"
    assert copies[".svg"].startswith(b"<svg/>\n<!-- Experiment a- -b: a copy of ")
    assert b"--" not in copies[".svg"].strip()[11:-3]  # not allowed in a comment
    same = {path.suffix for path in paths if copies[path.suffix] == path.read_bytes()}
    assert same == {".csv", ".png", ".pdf"}


# --- what DVC reads


def test_metrics_are_mean_scores_and_rows_of_the_loss_log(tmp_path):
    languages = {"deu": "de", "fra": "fr", "gsw": "und"}
    scores = [
        write_scores(tmp_path, "ems", {"deu": 50.0, "fra": (60.0, 71.0)}),
        write_scores(tmp_path, "ems", dict.fromkeys(languages, 8.0), languages, benchmark="ntrex"),
    ]
    log = write_lines(tmp_path / "models/ems/losses.jsonl", map(json.dumps, LOG))
    write_metrics(scores, [log], tmp_path / "out")
    means = {"tatoeba": 57.75, "validation": {"total": 2.5, "p1": 40.5}}
    means |= {"ntrex": {"2 trained languages": 8.0, "1 unseen language": 8.0}}
    assert json.loads((tmp_path / "out/scores.json").read_text()) == {"ems": means}
    rows = [(tmp_path / f"out/{part}/ems.csv").read_text() for part in ("training", "validation")]
    training = "step,xtr,total,lr\n2,3.0,3.0,0.1\n4,2.0,2.0,0.2\n"
    assert rows == [training, "step,xtr,total,p1\n0,5.0,5.0,1.5\n4,2.5,2.5,40.5\n"]


def test_without_training_the_metrics_have_no_rows(tmp_path):
    write_metrics([], [], tmp_path)
    assert json.loads((tmp_path / "scores.json").read_text()) == {}
    assert [*(tmp_path / "training").iterdir(), *(tmp_path / "validation").iterdir()] == []
