"""Laws of checkpoints: the newest that is as it was written wins, and nothing else is picked up."""

import json
import os
import resource
import signal

import pytest
import torch
from made.train import LANGUAGES, MAX_TOKENS, contents, train_until

from ems.base.errors import EmsError
from ems.shards.reader import PairStore
from ems.train import checkpoint
from ems.train.checkpoint import Keep
from ems.train.job import claim_identity, differences, train

pytestmark = pytest.mark.usefixtures("logged")


def steps(state):
    return [checkpoint.step_of(path) for path in checkpoint.checkpoints(state)]


# --- corrupt ones


def cut_short(path):
    os.truncate(path, path.stat().st_size - 2)


def flip(path):
    """Change one bit in the middle, which no length and rarely a parser would show."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


FILES = [*checkpoint.FILES, checkpoint.STATE]
DAMAGES = [flip, cut_short, os.unlink]


@pytest.mark.parametrize("file", [checkpoint.OPTIMIZER, checkpoint.STATE])
def test_a_corrupt_newest_checkpoint_is_passed_over_with_a_warning(
    file, toy, never_killed, tmp_path, caplog
):
    state = train_until(toy, tmp_path, 20)
    flip(state / "step-00000020" / file)
    assert contents(toy.train(tmp_path)) == contents(never_killed)
    assert "step-00000020 cannot be read" in caplog.text
    assert "resumed at step 15" in caplog.text


def test_with_every_checkpoint_corrupt_training_starts_anew_and_says_so(
    toy, never_killed, tmp_path, caplog
):
    state = train_until(toy, tmp_path, 20)
    for folder in checkpoint.checkpoints(state):
        flip(folder / checkpoint.MODEL)
    caplog.clear()
    assert contents(toy.train(tmp_path)) == contents(never_killed)
    assert f"{state}: none of its checkpoints can be read; training starts anew" in caplog.text
    assert "from step 0" in caplog.text


@pytest.fixture(scope="module")
def saved_state(toy, tmp_path_factory):
    return train_until(toy, tmp_path_factory.mktemp("saved"), 20)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_a_file_with_a_flipped_bit_or_cut_short_or_gone_is_found(file, damage, saved_state):
    path = saved_state / "step-00000020" / file
    content = path.read_bytes()
    assert checkpoint.verified(path.parent)["step"] == 20
    damage(path)
    try:
        with pytest.raises(EmsError, match=file):
            checkpoint.verified(path.parent)
    finally:
        path.write_bytes(content)


def test_any_changed_byte_of_the_state_file_is_found(saved_state):
    """Except where JSON means the same, as with the last digit of some numbers."""
    path = saved_state / "step-00000020/state.json"
    content, noticed = path.read_bytes(), 0
    try:
        for at in range(len(content)):
            changed = bytearray(content)
            changed[at] ^= 1
            path.write_bytes(changed)
            try:
                same = json.loads(changed) == json.loads(content)
            except ValueError:
                same = False
            if not same:
                noticed += 1
                with pytest.raises(EmsError):
                    checkpoint.verified(path.parent)
    finally:
        path.write_bytes(content)
    assert noticed > 0.95 * len(content)


# --- which stay


@pytest.mark.parametrize(("count", "expected"), [(1, [20]), (2, [15, 20]), (3, [10, 15, 20])])
def test_the_newest_checkpoints_are_kept_and_none_after_the_end(count, expected, toy, tmp_path):
    settings = {"keep_checkpoints": count}  # by default 2
    state = train_until(toy, tmp_path, 20, train=settings if count != 2 else {})
    assert steps(state) == expected
    toy.train(tmp_path, train=settings)
    assert not (tmp_path / "state").exists()


def test_those_to_average_stay_whatever_was_saved_between_them():
    keep = Keep(newest=2, regular=3, interval=10, last=45)
    assert keep.kept([10, 20, 23]) == {10, 20, 23}
    assert keep.kept([10, 20, 23, 30, 31]) == {10, 20, 30, 31}
    assert keep.kept([10, 20, 30, 40, 45]) == {30, 40, 45}
    assert Keep(newest=2).kept([1, 2, 3]) == {2, 3}


def test_a_newer_corrupt_one_does_not_push_out_the_good_one_below_it(toy, tmp_path):
    settings = {"keep_checkpoints": 1}
    state = train_until(toy, tmp_path, 20, train=settings)
    (state / "step-00000020").rename(state / "step-00000025")
    model, adam = torch.nn.Linear(1, 1), torch.optim.Adam([torch.zeros(1)])
    done = checkpoint.RunProgress(step=22)
    checkpoint.save_checkpoint(state, model, adam, done, Keep(newest=1))
    assert steps(state) == [22, 25]


def test_what_a_kill_left_half_written_is_removed_at_the_next_start(toy, never_killed, tmp_path):
    state = train_until(toy, tmp_path, 10)
    for name in (".step-00000015.999.part", ".step-00000005.998.part"):
        (state / name).mkdir()
        (state / name / "model.safetensors").write_bytes(b"half")
    (state / ".identity.json.997.part").write_bytes(b"{")
    train_until(toy, tmp_path, 15)
    assert [path.name for path in state.iterdir() if path.name.startswith(".")] == []
    assert contents(toy.train(tmp_path)) == contents(never_killed)


def test_a_disk_that_is_full_ends_the_run_and_leaves_the_checkpoints_before(
    toy, never_killed, tmp_path
):
    """Write errors of the kernel itself: no file may be longer than half the model's."""
    state = train_until(toy, tmp_path, 10)
    largest = (state / "step-00000010/optimizer.safetensors").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest // 2, hard))
    try:
        with pytest.raises(EmsError, match=r"cannot write .*step-00000015.*free some space"):
            toy.train(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert steps(state) == [5, 10]
    assert [checkpoint.verified(path)["step"] for path in checkpoint.checkpoints(state)] == [5, 10]
    assert contents(toy.train(tmp_path)) == contents(never_killed)


# --- of what they are


def test_a_run_of_other_settings_is_refused_with_what_differs(toy, tmp_path):
    state = train_until(toy, tmp_path, 10)
    before = {path.name: contents(path) for path in state.glob("step-*")}
    with pytest.raises(EmsError) as error:
        toy.train(tmp_path, model={"dropout": 0.3}, train={"learning_rate": 0.02, "seed": 9})
    message = str(error.value)
    assert "\n" not in message
    changed = ["system.model.dropout 0.2 -> 0.3", "system.train.learning_rate 0.01 -> 0.02"]
    changed += ["system.train.seed (none) -> 9"]
    assert f"of other settings: {'; '.join(changed)}. Set it back" in message
    for words in (str(state), "step 10", "--afresh", "afresh=true"):
        assert words in message
    assert {path.name: contents(path) for path in state.glob("step-*")} == before
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("variable", ["", "1"])
def test_set_back_it_goes_on_and_afresh_it_starts_anew(
    variable, toy, tmp_path, caplog, monkeypatch
):
    """The flag asks for it, or the workflow by a variable, which is empty unless it does."""
    monkeypatch.setenv("EMS_AFRESH", "")
    state = train_until(toy, tmp_path, 10)
    changes = {"train": {"learning_rate": 0.02}}
    with pytest.raises(EmsError, match="learning_rate"):
        toy.train(tmp_path, **changes)
    train_until(toy, tmp_path, 15)
    assert "resumed at step 10" in caplog.text
    caplog.clear()
    monkeypatch.setenv("EMS_AFRESH", variable)
    other = toy.train(tmp_path, afresh=not variable, **changes)
    assert "from step 0" in caplog.text
    assert f"{state}: deleted checkpoints of other settings" in caplog.text
    assert contents(other) == contents(toy.train(tmp_path / "alone", **changes))


def test_afresh_does_not_throw_away_the_checkpoints_of_the_same_settings(
    toy, never_killed, tmp_path, caplog
):
    """A retry of a killed job has the same flags."""
    train_until(toy, tmp_path, 10)
    assert contents(toy.train(tmp_path, afresh=True)) == contents(never_killed)
    assert "resumed at step 10" in caplog.text


def test_other_data_and_another_source_are_refused_too(toy, tmp_path, monkeypatch):
    train_until(toy, tmp_path, 10)
    experiment, data = toy.experiment(), toy.data()
    data.training = PairStore(toy.shards("training")[:1], LANGUAGES, MAX_TOKENS)
    with pytest.raises(EmsError, match=r"shards.train 220 pairs, .* -> 160 pairs, "):
        train(experiment, "ems", data, tmp_path / "model", tmp_path / "state")
    monkeypatch.setattr("ems.train.job.source_hash", lambda module: "other")
    with pytest.raises(EmsError, match=r"of other settings: the source of ems\.train\. Set"):
        toy.train(tmp_path)


def test_each_changed_key_is_told_once():
    old = {"settings": {"a": {"b": 1, "c": 2}, "d": [1]}, "source": "x", "vocabulary": "v"}
    new = {"settings": {"a": {"b": 1, "c": 3}, "d": [1, 2], "e": True}, "source": "y"}
    assert differences(old, new) == [
        "a.c 2 -> 3",
        "d [1] -> [1, 2]",
        "e (none) -> True",
        "the source of ems.train",
        "vocabulary v -> (none)",
    ]
    assert differences(old, old) == []


def test_a_folder_of_others_without_a_checkpoint_holds_nothing_to_lose(tmp_path):
    """As a run leaves it that is killed before its first checkpoint."""
    first = claim_identity(tmp_path, {"settings": {"a": 1}})
    second = claim_identity(tmp_path, {"settings": {"a": 2}})
    assert second.is_dir()
    assert not first.exists()
