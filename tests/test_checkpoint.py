"""Laws of checkpoints: the newest undamaged one wins, and the ones that make the model stay."""

import json
import os
import resource
import shutil
import signal

import pytest
import torch
from made.experiments import changed, one_line
from made.places import cut, flip
from made.shards import contents
from made.train import MAX_TOKENS, rows, train_into, train_stopped, train_until, weights_of

from ems.base.errors import EmsError
from ems.config.train import TrainSettings
from ems.shards.reader import PairStore
from ems.train import checkpoint, journal
from ems.train.checkpoint import Keep
from ems.train.job import claim_identity, train
from ems.train.journal import Journal

pytestmark = pytest.mark.usefixtures("logged")


def steps(state):
    return [checkpoint.step_of(path) for path in checkpoint.checkpoints(state)]


OTHER = ["20 cannot be read", "resumed at step 15"]
NONE = ["state: none of its checkpoints can be read; training starts anew", "from step 0"]
CORRUPT = [  # file, of which checkpoints, words of the log
    ("optimizer.safetensors", [20], OTHER),
    ("state.json", [20], OTHER),
    ("model.safetensors", [15, 20], NONE),
]


@pytest.mark.parametrize(("file", "steps", "words"), CORRUPT)
def test_a_corrupt_checkpoint_is_skipped(file, steps, words, toy, never_killed, tmp_path, caplog):
    state = train_until(toy, tmp_path, 20)
    for step in steps:
        flip(state / f"step-{step:08}" / file)
    caplog.clear()
    assert contents(toy.train(tmp_path)) == contents(never_killed)
    assert all(part in caplog.text.replace(str(state), "state") for part in words)


@pytest.fixture(scope="module")
def saved_state(toy, tmp_path_factory):
    return train_until(toy, tmp_path_factory.mktemp("saved"), 20)


@pytest.mark.parametrize("damage", [flip, cut, os.unlink])
@pytest.mark.parametrize("file", [*checkpoint.FILES, checkpoint.STATE])
def test_a_changed_cut_or_missing_file_is_noticed(file, damage, saved_state):
    path = saved_state / "step-00000020" / file
    content = path.read_bytes()
    assert checkpoint.verified(path.parent)["step"] == 20
    damage(path)
    try:
        with pytest.raises(EmsError, match=file):
            checkpoint.verified(path.parent)
    finally:
        path.write_bytes(content)


def test_another_number_of_the_state_file_is_noticed(saved_state):
    path = saved_state / "step-00000020/state.json"
    content = path.read_text()
    path.write_text(content.replace('"attempts": 1', '"attempts": 2'))
    assert path.read_text() != content
    with pytest.raises(EmsError, match=r"state\.json"):
        checkpoint.verified(path.parent)
    path.write_text(content)


@pytest.mark.parametrize(("settings", "kept"), [({}, [15, 20]), ({"keep_checkpoints": 1}, [20])])
def test_the_newest_checkpoints_are_kept_and_none_after_the_end(settings, kept, toy, tmp_path):
    state = train_until(toy, tmp_path, 20, train=settings)
    assert steps(state) == kept
    toy.train(tmp_path, train=settings)
    assert not (tmp_path / "state").exists()


def test_checkpoints_to_average_are_kept():
    settings = {"average_checkpoints": 3, "checkpoint_every": 10, "steps": 45}
    keep = Keep(TrainSettings(keep_checkpoints=2, **settings))
    assert keep.kept([10, 20, 23]) == {10, 20, 23}
    assert keep.kept([10, 20, 23, 30, 31]) == {10, 20, 30, 31}
    assert keep.kept([10, 20, 30, 40, 45]) == {30, 40, 45}
    assert Keep(TrainSettings(steps=3, keep_checkpoints=2)).kept([1, 2, 3]) == {2, 3}


def test_a_newer_corrupt_checkpoint_does_not_replace_the_good_one(toy, tmp_path):
    settings = {"keep_checkpoints": 1}
    state = train_until(toy, tmp_path, 20, train=settings)
    (state / "step-00000020").rename(state / "step-00000025")
    model, adam = torch.nn.Linear(1, 1), torch.optim.Adam([torch.zeros(1)])
    done = checkpoint.RunProgress(step=22)
    keep = Keep(TrainSettings(steps=22, keep_checkpoints=1))
    checkpoint.save_checkpoint(state, model, adam, done, keep)
    assert steps(state) == [22, 25]


def test_leftovers_of_a_kill_are_removed_at_the_next_start(toy, tmp_path):
    state = train_until(toy, tmp_path, 10)
    (state / ".step-00000015.999.part").mkdir()
    (state / ".step-00000015.999.part/model.safetensors").write_bytes(b"half")
    (state / ".identity.json.997.part").write_bytes(b"{")
    train_until(toy, tmp_path, 15)
    assert not list(state.glob(".*"))


def test_a_full_disk_ends_the_run_and_leaves_the_checkpoints_before(toy, never_killed, tmp_path):
    """By the kernel: no file may be longer than half the optimiser's."""
    state = train_until(toy, tmp_path, 10)
    largest = (state / "step-00000010/optimizer.safetensors").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest // 2, hard))
    try:
        with pytest.raises(EmsError, match=r"cannot write .*step-00000015.*limit of file sizes"):
            toy.train(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert [checkpoint.verified(path)["step"] for path in checkpoint.checkpoints(state)] == [5, 10]
    assert not list(tmp_path.rglob("*.part"))
    assert contents(toy.train(tmp_path)) == contents(never_killed)


def test_a_run_of_other_settings_is_refused_with_the_differences(toy, tmp_path):
    state = train_until(toy, tmp_path, 10)
    changes = {"model": {"dropout": 0.3}, "train": {"learning_rate": 0.02, "seed": 9}}
    message = one_line(toy.train, tmp_path, **changes)
    assert "of other settings: model.dropout: 0.2 -> 0.3; train.learning" in message
    for words in (str(state), "step 10", "--afresh", "afresh=true"):
        assert words in message
    assert steps(state) == [5, 10]
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("variable", ["", "1"])  # the workflow always sets it
def test_old_settings_resume_and_afresh_starts_anew(variable, toy, tmp_path, caplog, monkeypatch):
    state = train_until(toy, tmp_path, 10)
    changes = {"train": {"learning_rate": 0.02}}
    with pytest.raises(EmsError, match="learning_rate"):
        toy.train(tmp_path, **changes)
    train_until(toy, tmp_path, 15, afresh=True)  # a retry of a killed job has the same flags
    assert "resumed at step 10" in caplog.text
    monkeypatch.setenv("EMS_AFRESH", variable)
    other = toy.train(tmp_path, afresh=not variable, **changes)
    assert "from step 0" in caplog.text
    assert f"{state}: deleted checkpoints of other settings" in caplog.text
    assert contents(other) == contents(toy.train(tmp_path / "alone", **changes))


def test_other_data_and_another_source_are_refused_too(toy, tmp_path, monkeypatch):
    train_until(toy, tmp_path, 10)
    experiment, data = toy.experiment(), toy.data()
    data.training = PairStore(toy.shards("training")[:1], ["en", "de", "fr"], MAX_TOKENS)
    with pytest.raises(EmsError, match=r"shards.train: 220 pairs, .* -> 160 pairs, "):
        train(experiment, "ems", data, tmp_path / "model", tmp_path / "state")
    monkeypatch.setattr("ems.train.job.source_hash", lambda module: "other")
    with pytest.raises(EmsError, match=r"of other settings: source: \w+ -> other\. Set"):
        toy.train(tmp_path)


def test_a_state_of_other_settings_without_a_checkpoint_is_deleted(tmp_path):
    first = claim_identity(tmp_path, {"settings": {"a": 1}})
    second = claim_identity(tmp_path, {"settings": {"a": 2}})
    assert second.is_dir()
    assert not first.exists()


TRAIN = {"keep": "best", "validate_every": 7, "keep_checkpoints": 1}
BEST = {"train": TRAIN, "validation": {"name": "Held", "version": "v1", "source": "nowhere"}}
TOTALS = {0: 1.0, 7: 5.0, 14: 3.0, 21: 3.0, 28: 4.0, 30: 6.0}  # 0 is before any training
P1 = {0: 90.0, 7: 60.0, 14: 50.0, 21: 40.0, 28: 50.0, 30: 20.0}


def give_scores(patch):
    """Let validation compute everything, but return the loss and P@1 above."""
    validated = Journal._validated

    def scores(run):
        step = run.done.step
        return {**validated(run), "total": TOTALS.get(step, 9), "p1": P1.get(step, 0)}

    patch.setattr(Journal, "_validated", scores)


@pytest.fixture
def scored(monkeypatch):
    give_scores(monkeypatch)


@pytest.fixture
def saved_weights(monkeypatch):
    saved, save = {}, journal.save_checkpoint

    def spy(state, modules, optimizer, done, keep):
        saved[done.step] = {n: v.detach().clone() for n, v in modules.state_dict().items()}
        save(state, modules, optimizer, done, keep)

    monkeypatch.setattr(journal, "save_checkpoint", spy)
    return saved


def same_weights(ones, others):
    assert ones.keys() == others.keys()
    return all(torch.equal(value, others[name]) for name, value in ones.items())


@pytest.mark.usefixtures("scored")
@pytest.mark.parametrize(("by", "step"), [("loss", 21), ("p1", 7)])
def test_the_best_weights_are_kept(by, step, toy, tmp_path, saved_weights, caplog):
    """The step is no regular checkpoint. On ties the later one wins, and step 0 never does."""
    out = toy.train(tmp_path, **changed(BEST, {"train": {"best_by": by}}))
    assert same_weights(weights_of(out), saved_weights[step])
    assert not same_weights(weights_of(out), saved_weights[30])
    assert json.loads((out / "model.json").read_text())["step"] == step
    assert [row["step"] for row in rows(out, "validation") if "kept" in row] == [step]
    assert f"validation at step {step}, whose weights are kept" in caplog.text


@pytest.mark.usefixtures("scored")
def test_keeping_the_best_changes_nothing_else_in_the_log(toy, tmp_path):
    last = changed(BEST, {"train": {"keep": "last"}})
    best, last = (toy.train(tmp_path / str(at), **own) for at, own in enumerate([BEST, last]))
    unmarked = [{k: v for k, v in r.items() if k != "kept"} for r in rows(best, "validation")]
    assert unmarked == rows(last, "validation")
    assert rows(best, "train") == rows(last, "train")
    assert "step" not in json.loads((last / "model.json").read_text())


AVERAGE = {"train": {"average_checkpoints": 3}}
KILLS = [  # settings, how it dies, in which steps
    (BEST, train_until, [7, 14, 21, 25, 30]),
    (BEST, train_into, [8, 16, 22, 29]),
    (BEST, train_stopped, [20]),
    (AVERAGE, train_stopped, [22]),  # its checkpoint is not averaged
]


@pytest.fixture(scope="module")
def whole(toy, tmp_path_factory):
    """The model folders of an uninterrupted run that keeps the best, and of one that averages."""
    with pytest.MonkeyPatch.context() as patch:
        give_scores(patch)
        folders = [toy.train(tmp_path_factory.mktemp("whole"), **own) for own in (BEST, AVERAGE)]
    return [contents(folder) for folder in folders]


@pytest.mark.usefixtures("scored")
@pytest.mark.parametrize(("settings", "die", "steps"), KILLS)
def test_the_choice_of_weights_survives_kills(settings, die, steps, toy, whole, tmp_path):
    for step in steps:
        die(toy, tmp_path, step, **settings)
    assert contents(toy.train(tmp_path, **settings)) == whole[settings is AVERAGE]


@pytest.mark.usefixtures("scored")
@pytest.mark.parametrize(("settings", "damaged"), [(BEST, 21), (AVERAGE, 25)])
@pytest.mark.slow
def test_a_damaged_chosen_checkpoint_is_made_again(settings, damaged, toy, whole, tmp_path):
    more = changed(settings, {"train": {"keep_checkpoints": 3}})
    state = train_until(toy, tmp_path, 30, **more)
    cut(state / f"step-{damaged:08}/model.safetensors")
    message = rf"delete step-000000{damaged}, .*step-00000030 in .* again"
    with pytest.raises(EmsError, match=message):
        toy.train(tmp_path, **more)
    for folder in checkpoint.checkpoints(state):
        if checkpoint.step_of(folder) >= damaged:
            shutil.rmtree(folder)
    made, expected = contents(toy.train(tmp_path, **more)), whole[settings is AVERAGE]
    assert all(made[name] == expected[name] for name in expected if name != "model.json")


def test_the_model_is_the_mean_of_the_last_checkpoints(toy, tmp_path, saved_weights):
    settings = {"average_checkpoints": 3, "steps": 28, "keep_checkpoints": 1}
    weights = weights_of(toy.train(tmp_path, train=settings))
    assert sorted(saved_weights) == [5, 10, 15, 20, 25, 28]
    assert weights.keys() == saved_weights[28].keys()
    for name, tensor in weights.items():
        parts = [saved_weights[step][name].flatten().tolist() for step in (20, 25, 28)]
        mean = [sum(values) / 3 for values in zip(*parts, strict=True)]  # Python's float64
        assert torch.equal(tensor.flatten(), torch.tensor(mean, dtype=torch.float64).float()), name


def test_the_best_of_no_step_is_the_untrained_model(toy, tmp_path):
    best, last = (
        contents(toy.train(tmp_path / k, **changed(BEST, {"train": {"steps": 0, "keep": k}})))
        for k in ("best", "last")
    )
    assert all(best[name] == last[name] for name in last.keys() - {"model.json"})


def test_keeping_the_best_needs_pairs_to_validate_on(toy, tmp_path):
    with pytest.raises(EmsError, match=r"no pairs to validate on; set `validation`"):
        toy.train(tmp_path, held_out=False, **BEST)
