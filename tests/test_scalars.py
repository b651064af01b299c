"""Laws of TensorBoard's scalars: they are the loss log, and no model depends on them."""

import pytest
from conftest import needs
from made.experiments import MINIMAL, Settings, edited
from made.shards import contents
from made.train import json_rows, train_into

from ems.base.errors import EmsError
from ems.config import train as settings
from ems.config.stages import stage_hash
from ems.train.measures import rounded, scalars

ON = {"train": {"tensorboard": True}}


@pytest.fixture
def read():
    """Read a folder as TensorBoard does: tag -> [(step, value)]."""
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ModuleNotFoundError:
        needs(False, "tensorboard is not installed (pip install -e .[tensorboard])")

    def tags(folder):
        board = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
        return {
            tag: [(event.step, event.value) for event in board.Scalars(tag)]
            for tag in board.Tags()["scalars"]
        }

    return tags


def by_tag(model):
    tags = {}
    for row in json_rows(model / "losses.jsonl"):
        for tag, value in scalars(row).items():
            tags.setdefault(tag, []).append((row["step"], pytest.approx(value, rel=1e-6)))
    return tags


def test_tensorboard_reads_every_value_of_the_loss_log(toy, never_killed, tmp_path, read):
    model, board = toy.train(tmp_path, **ON), read(tmp_path / "scalars")
    assert board == by_tag(model)
    tags = {"train/xtr", "train/contrastive", "train/total", "train/lr", "validation/total"}
    assert {*tags, "validation/p1", "p1/de", "p1/fr"} <= set(board)
    assert [step for step, _ in board["p1/de"]] == [0, 10, 20, 30]
    assert contents(model) == contents(never_killed)  # the same bytes as without the setting
    assert not (never_killed.parent / "scalars").exists()


@pytest.mark.parametrize("step", [3, 12])
def test_a_resumed_run_writes_every_value_once(step, toy, tmp_path, read):
    """Steps after the last checkpoint are done, validated and written down twice."""
    folder, changes = tmp_path / "scalars", {"train": {"checkpoint_every": 7, "tensorboard": True}}
    train_into(toy, tmp_path, step, **changes)
    assert read(folder)["validation/p1"]
    assert by_tag(toy.train(tmp_path, **changes)) == read(folder)
    assert len(list(folder.iterdir())) == 1


def test_another_training_replaces_the_scalars(toy, tmp_path, read):
    toy.train(tmp_path, **ON)
    model = toy.train(tmp_path, train={"tensorboard": True, "steps": 10})
    assert read(tmp_path / "scalars") == by_tag(model)


def test_the_setting_is_in_no_hash(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "find_spec", lambda name: name)  # as if it were installed
    project = Settings(tmp_path)
    off, on = project.load(), project.load(edited(MINIMAL, "train.tensorboard", True))
    assert on.systems["ems"].train.tensorboard
    stages = {"train": {"system": "ems"}, "bench": {"system": "ems", "benchmark": "tatoeba"}}
    for stage, wildcards in (stages | {"tables": {}}).items():
        assert stage_hash(on, stage, **wildcards) == stage_hash(off, stage, **wildcards), stage


def test_without_the_package_the_setting_is_an_error(toy, monkeypatch):
    monkeypatch.setattr(settings, "find_spec", lambda name: None)
    with pytest.raises(EmsError, match=r"tensorboard is not installed; `pip install .*tensorboard"):
        toy.experiment(**ON)


def test_numbers_have_six_digits_at_every_depth():
    assert rounded({"a": 1.23456789, "b": {"c": 98.7654321, "d": 0}}) == {
        "a": 1.23457,
        "b": {"c": 98.7654, "d": 0.0},
    }
