"""Laws of sending a loss log to a tracker: every row once, in order, also while training runs."""

import csv
import json
import sys
from types import SimpleNamespace

import pytest

from ems.base.errors import EmsError
from ems.commands.cli import main
from ems.tables import follow as module
from ems.tables.follow import follow

ROWS = [
    {"part": "validation", "step": 0, "pairs": 0, "xtr": 5.0, "total": 5.0, "p1": 1.0},
    {"part": "train", "step": 5, "pairs": 32, "xtr": 3.0, "total": 3.0, "lr": 0.1},
    {"part": "validation", "step": 5, "pairs": 32, "xtr": 2.0, "total": 2.0, "p1": 9.0},
]
ROWS[2] |= {"p1_by_language": {"de": 8.0, "fr": 10.0}, "kept": True}
ROWS[2] |= {"p1_by_corpus": {"News": 7.0, "Talks": 11.0}}
SENT = [
    (0, {"validation/xtr": 5.0, "validation/total": 5.0, "validation/p1": 1.0}),
    (5, {"train/xtr": 3.0, "train/total": 3.0, "train/lr": 0.1}),
    (
        5,
        {
            **{"validation/xtr": 2.0, "validation/total": 2.0, "validation/p1": 9.0},
            **{"p1/de": 8.0, "p1/fr": 10.0},
            **{"p1_by_corpus/News": 7.0, "p1_by_corpus/Talks": 11.0},
        },
    ),
]


def write_log(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def log(tmp_path):
    return write_log(tmp_path / "results/tiny/models/ems/losses.jsonl", ROWS)


@pytest.fixture(params=["wandb", "trackio"])
def tracker(request, monkeypatch):
    """A package with the calls of wandb and trackio, which keeps what it is sent."""
    package = SimpleNamespace(sent=[], runs=[], finished=0)
    package.init = lambda **names: package.runs.append(names)
    package.log = lambda values, step: package.sent.append((step, values))
    package.finish = lambda: setattr(package, "finished", package.finished + 1)
    package.name = request.param
    monkeypatch.setitem(sys.modules, request.param, package)
    return package


def test_each_row_is_sent_once_with_the_tags_of_tensorboard(tracker, log, tmp_path):
    assert follow(tracker.name, log, None, tmp_path) == len(ROWS)
    assert tracker.runs == [{"project": "tiny", "name": "ems"}]
    assert (tracker.sent, tracker.finished) == (SENT, 1)


def test_rows_of_a_training_that_runs_come_from_its_checkpoints(tracker, log, monkeypatch):
    """One look finds nothing, the next ones a checkpoint more each, the last one the model."""
    state = log.parents[2] / "state/ems"
    log.unlink()
    looks = [
        lambda: write_log(state / "1f/step-00000002/losses.jsonl", ROWS[:1]),
        lambda: write_log(state / "1f/step-00000005/losses.jsonl", ROWS[:2]),
        lambda: (state / "1f/step-00000007/losses.jsonl").parent.mkdir(),  # not whole yet
        lambda: write_log(state / "1f/step-00000010/losses.jsonl", []),
        lambda: write_log(log, ROWS),
    ]
    monkeypatch.setattr(module.time, "sleep", lambda seconds: looks.pop(0)())
    assert follow(tracker.name, log, state, log.parent) == len(ROWS)
    assert (tracker.sent, looks) == (SENT, [])


def test_a_malformed_row_ends_the_run_and_names_the_line(tracker, log, tmp_path):
    log.write_text(log.read_text() + "{\n")
    with pytest.raises(EmsError, match="line 4: expected JSON"):
        follow(tracker.name, log, None, tmp_path)
    assert tracker.sent == []


def test_dvclive_gets_a_table_of_each_value(log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # again: the same files, no row twice
        assert main(["follow", "--sink", "dvclive", "--losses", str(log)]) == 0
        folder = tmp_path / "results/dvclive/tiny/ems"
        last = json.loads((folder / "metrics.json").read_text())
        assert last["validation"] == {"xtr": 2.0, "total": 2.0, "p1": 9.0}
        text = (folder / "plots/metrics/validation/p1.tsv").read_text()
        rows = list(csv.DictReader(text.splitlines(), delimiter="\t"))
        assert [(row["step"], float(row["p1"])) for row in rows] == [("0", 1.0), ("5", 9.0)]


def test_a_package_that_is_not_installed_is_one_line(log, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert main(["follow", "--sink", "wandb", "--losses", str(log)]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert "--sink wandb: the package wandb is not installed; `pip install wandb`" in last
