"""Laws of `keep: best`: the model is that of its best validation, whatever killed the run."""

import json

import pytest
import torch
from made.experiments import changed
from made.train import contents, json_rows, rows, train_into, train_stopped, train_until, weights_of

from ems.base.errors import EmsError
from ems.train import checkpoint, journal
from ems.train.journal import Journal

pytestmark = pytest.mark.usefixtures("logged", "scored")

TRAIN = {"keep": "best", "validate_every": 7, "keep_checkpoints": 1}
BEST = {"train": TRAIN, "validation": {"name": "Held", "version": "v1", "source": "nowhere"}}
TOTALS = {0: 1.0, 7: 5.0, 14: 3.0, 21: 3.0, 28: 4.0, 30: 6.0}  # 0 is before any training
P1 = {0: 90.0, 7: 60.0, 14: 50.0, 21: 40.0, 28: 50.0, 30: 20.0}


@pytest.fixture
def scored(monkeypatch):
    """Validation of a step gives the loss and P@1 above, and does all of its work."""
    give_scores(monkeypatch)


def give_scores(monkeypatch):
    validated = Journal._validated

    def scores(run):
        step = run.done.step
        return {**validated(run), "total": TOTALS[step], "p1": P1[step]}

    monkeypatch.setattr(Journal, "_validated", scores)


def saved_weights(monkeypatch):
    """The weights of each checkpoint by its step, filled as they are saved."""
    saved, save = {}, journal.save_checkpoint

    def spy(state, modules, optimizer, done, keep):
        saved[done.step] = {n: v.detach().clone() for n, v in modules.state_dict().items()}
        save(state, modules, optimizer, done, keep)

    monkeypatch.setattr(journal, "save_checkpoint", spy)
    return saved


@pytest.mark.parametrize(("by", "step"), [("loss", 21), ("p1", 7)])
def test_the_model_is_that_of_the_best_validation_and_says_so(
    by, step, toy, tmp_path, monkeypatch, caplog
):
    """Between two regular checkpoints, with one on disk; of equals the later, and not step 0."""
    saved = saved_weights(monkeypatch)
    out = toy.train(tmp_path, **changed(BEST, {"train": {"best_by": by}}))
    assert step in saved
    found = weights_of(out)
    assert found.keys() == saved[step].keys()
    assert all(torch.equal(value, saved[step][name]) for name, value in found.items())
    assert not all(torch.equal(value, saved[30][name]) for name, value in found.items())
    assert json.loads((out / "model.json").read_text())["step"] == step
    assert [row["step"] for row in json_rows(out / "losses.jsonl") if "kept" in row] == [step]
    assert f"validation at step {step}, whose weights are kept" in caplog.text


def test_all_else_of_the_log_is_that_of_a_run_that_keeps_the_last(toy, tmp_path):
    last = changed(BEST, {"train": {"keep": "last"}})
    best, last = (toy.train(tmp_path / str(at), **own) for at, own in enumerate([BEST, last]))
    unmarked = [{k: v for k, v in r.items() if k != "kept"} for r in rows(best, "validation")]
    assert unmarked == rows(last, "validation")
    assert rows(best, "train") == rows(last, "train")
    assert "step" not in json.loads((last / "model.json").read_text())


@pytest.fixture(scope="module")
def whole(toy, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        give_scores(patch)
        return contents(toy.train(tmp_path_factory.mktemp("best"), **BEST))


@pytest.mark.parametrize(
    ("die", "steps"), [(train_until, [7, 14, 21, 25, 30]), (train_into, [8, 16, 22, 29])]
)
def test_killed_at_or_between_checkpoints_it_gives_the_same_bytes(die, steps, toy, whole, tmp_path):
    for step in steps:
        die(toy, tmp_path, step, **BEST)
    assert contents(toy.train(tmp_path, **BEST)) == whole


def test_stopped_before_the_best_validation_it_gives_the_same_bytes(toy, whole, tmp_path):
    train_stopped(toy, tmp_path, 20, **BEST)
    assert contents(toy.train(tmp_path, **BEST)) == whole


def test_a_best_checkpoint_that_is_damaged_is_refused_and_can_be_made_again(toy, whole, tmp_path):
    settings = changed(BEST, {"train": {"keep_checkpoints": 3}})
    state = train_until(toy, tmp_path, 30, **settings)
    path = state / "step-00000021/model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00\x00")
    with pytest.raises(EmsError, match=r"delete step-00000021, .*, step-00000030 in"):
        toy.train(tmp_path, **settings)
    for folder in checkpoint.checkpoints(state):
        if checkpoint.step_of(folder) >= 21:
            checkpoint._remove(folder)
    made = contents(toy.train(tmp_path, **settings))
    assert all(made[name] == whole[name] for name in whole if name != "model.json")


def test_without_a_training_step_the_model_is_the_untrained_one(toy, tmp_path):
    best, last = (
        toy.train(tmp_path / keep, **changed(BEST, {"train": {"steps": 0, "keep": keep}}))
        for keep in ("best", "last")
    )
    files = contents(last).keys() - {"model.json"}
    assert all(contents(best)[name] == contents(last)[name] for name in files)


def test_what_cannot_be_compared_or_contradicts_it_is_refused(toy, tmp_path):
    with pytest.raises(EmsError, match=r"no pairs to validate on; set `validation`"):
        toy.train(tmp_path, held_out=False, **BEST)
    with pytest.raises(EmsError, match=r"systems\.ems: train\.keep: best compares validations"):
        toy.experiment(train=TRAIN)
    with pytest.raises(EmsError, match=r"average_checkpoints the mean of 2; remove one of them"):
        toy.experiment(**changed(BEST, {"train": {"average_checkpoints": 2}}))
