"""Laws of training: same seed same bytes, killed and resumed equals never killed, nothing half
written.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from made.train import LANGUAGES, contents, rows, train_until
from safetensors import SafetensorError
from safetensors.torch import load_file

from ems.base.errors import EmsError
from ems.model import devices
from ems.model.encode import SentenceEncoder
from ems.model.objectives.system import DeviceBatch, System
from ems.train.job import claimed
from ems.train.validate import validate

pytestmark = pytest.mark.usefixtures("logged")


def saved(state):
    """Every byte of the checkpoints in a state folder."""
    return {path.name: contents(path) for path in state.glob("step-*")}


# --- the same seed


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(toy, never_killed, tmp_path):
    again = toy.train(tmp_path / "again")
    assert contents(again) == contents(never_killed)
    other = contents(toy.train(tmp_path / "other", seed=4))
    for name in ("model.safetensors", "heads.safetensors", "losses.jsonl"):
        assert other[name] != contents(never_killed)[name]


def test_two_threads_repeat_themselves_too(toy, tmp_path):
    first, second = (
        toy.train(tmp_path / name, train={"threads": 2, "steps": 10}) for name in ("a", "b")
    )
    assert contents(first) == contents(second)


# --- killed and resumed

KILLS = {"first": [5], "middle": [20], "last, model not written": [30], "again": [10, 15, 25]}


@pytest.mark.parametrize("name", KILLS)
def test_killed_after_a_checkpoint_and_resumed_equals_never_killed(
    name, toy, never_killed, tmp_path, caplog
):
    for step in KILLS[name]:
        train_until(toy, tmp_path, step)
    caplog.clear()
    assert contents(toy.train(tmp_path)) == contents(never_killed)
    attempt = 1 + len(KILLS[name])
    assert f"resumed at step {KILLS[name][-1]} (attempt {attempt})" in caplog.text


def test_a_system_that_another_process_trains_now_is_left_alone(toy, tmp_path):
    state = train_until(toy, tmp_path, 10)
    before = saved(state)
    with claimed(state.parent), pytest.raises(EmsError, match="another process"):
        toy.train(tmp_path)
    assert saved(state) == before


# --- what is written


def test_no_step_at_all_writes_the_untrained_model(toy, tmp_path):
    out = toy.train(tmp_path, train={"steps": 0})
    torch.manual_seed(3)
    system = System(toy.experiment().systems["ems"], 3, 300)
    for file, module in (("model", system.encoder), ("heads", system.heads)):
        written = load_file(out / f"{file}.safetensors")
        assert set(written) == set(module.state_dict())
        for key, value in module.state_dict().items():
            assert torch.equal(written[key], value), key
    assert rows(out, "train") == []
    assert [row["step"] for row in rows(out, "validation")] == [0]


def test_what_prepares_a_text_lies_in_the_model_folder(toy, tmp_path):
    """The segmenter of each language and of unseen ones, and what is dropped of the text."""
    tokens = {}
    for kept in ("keep", "drop"):
        changes = {"segmenters": {"default": "sacremoses", "fr": "none"}}
        changes |= {"train": {"steps": 0}, "clean": {"format_characters": kept}}
        encoder = SentenceEncoder(toy.train(tmp_path / kept, **changes))
        tokens[kept] = [t.tolist() for t in encoder.tokenise(["ba\u00adko", "bako"], "en")]
    assert tokens["keep"][0] != tokens["keep"][1] == tokens["drop"][0] == tokens["drop"][1]
    assert set(encoder.segmenters) == {"und", *LANGUAGES}
    unseen, german, french = (
        encoder.tokenise(["ba,ko!"], code)[0].tolist() for code in ("und", "de", "fr")
    )
    assert unseen == german != french
    assert np.isfinite(encoder.encode(["ba,ko!"], "und")).all()


def test_every_file_at_rest_is_safetensors_json_or_the_vocabulary(toy, never_killed, tmp_path):
    """No pickle anywhere: nothing that is loaded can run code."""
    state = train_until(toy, tmp_path, 10)
    files = [path for path in [*state.rglob("*"), *never_killed.rglob("*")] if path.is_file()]
    assert len(files) == 2 * 5 + 1 + 5  # two checkpoints, what they are of, one model
    for path in files:
        if path.name == "vocabulary.model":
            assert path.read_bytes() == toy.vocabulary.read_bytes()
        elif path.suffix == ".safetensors":
            assert load_file(path)
        elif path.suffix == ".jsonl":
            assert [json.loads(line) for line in path.read_text().splitlines()]
        else:
            assert json.loads(path.read_text())


def failing(error):
    """A save_file that writes some bytes and fails as a full disk does."""

    def save(of, path, metadata):
        Path(path).write_bytes(b"half")
        raise error

    return save


DISK_FULL = [
    OSError(28, "No space left on device"),
    SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
]


@pytest.mark.parametrize(
    ("step", "name"), [(10, r"step-00000015"), (30, r"model\.safetensors")], ids=str
)
@pytest.mark.parametrize("error", DISK_FULL, ids=["OSError", "SafetensorError"])
def test_what_cannot_be_written_leaves_what_was_there_and_nothing_half_written(
    error, step, name, toy, never_killed, tmp_path, monkeypatch
):
    state = train_until(toy, tmp_path, step)
    before = saved(state)
    monkeypatch.setattr(devices, "save_file", failing(error))
    with pytest.raises(EmsError, match=rf"cannot write .*{name}.*No space left"):
        toy.train(tmp_path)
    assert saved(state) == before
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.glob("model/model.*"))
    monkeypatch.undo()
    assert contents(toy.train(tmp_path)) == contents(never_killed)


# --- what stops a run


@pytest.mark.parametrize("steps", [1, 20])
def test_a_run_that_diverges_writes_no_model(steps, toy, tmp_path):
    """Also when it is the last step that spoils the weights and nothing computes a loss of them."""
    diverging = {"learning_rate": 1e38, "warmup_steps": 0, "steps": steps, "checkpoint_every": 1}
    with pytest.raises(EmsError, match=r"not finite.*learning_rate"):
        toy.train(tmp_path, held_out=False, train=diverging)
    assert not (tmp_path / "model").exists()
    for path in (tmp_path / "state").rglob("model.safetensors"):
        assert all(value.isfinite().all() for value in load_file(path).values())


def test_a_gpu_that_is_not_there_is_a_clear_error(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EmsError, match=r"train\.device: cuda.*no GPU.*auto or cpu"):
        toy.train(tmp_path, train={"device": "cuda"})


# --- validation


def test_validation_changes_no_bit_of_the_training(toy, never_killed, tmp_path):
    often = toy.train(tmp_path / "often", train={"validate_every": 1})
    never = toy.train(tmp_path / "never", held_out=False)
    assert len(rows(often, "validation")) == 31
    assert rows(never, "validation") == []
    for file in ("model.safetensors", "heads.safetensors"):
        expected = (never_killed / file).read_bytes()
        assert (often / file).read_bytes() == (never / file).read_bytes() == expected


def naive_p1(queries, candidates):
    hits = 0
    for at, query in enumerate(queries):
        scores = [
            float(query @ other) / math.sqrt(float(query @ query) * float(other @ other))
            for other in candidates
        ]
        hits += scores.index(max(scores)) == at
    return 100 * hits / len(queries)


def test_validation_is_without_dropout_and_leaves_train_mode(toy):
    torch.manual_seed(0)
    settings = toy.experiment(model={"dropout": 0.5, "attention_dropout": 0.5}).systems["ems"]
    system, store = System(settings, 3, 300).train(), toy.store("validation")
    before = torch.get_rng_state()
    result = validate(system, store, batch_pairs=6)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training for module in system.modules())
    assert all(parameter.grad is None for parameter in system.parameters())

    system.eval()
    sums, pairs = {"xtr": 0.0, "contrastive": 0.0, "total": 0.0}, 0
    scores = []
    with torch.no_grad():
        for group, size in enumerate([20, 7]):  # an eighth of the training pairs
            for start in range(0, size, 6):
                within = np.arange(start, min(start + 6, size))
                batch = store.assemble(np.full(len(within), group), within)
                for name, value in system(DeviceBatch.copy(batch, torch.device("cpu"))).items():
                    sums[name] += value.item() * len(within)
                pairs += len(within)
            batch = store.assemble(np.full(size, group), np.arange(size))
            vectors = system.encoder(*map(torch.from_numpy, (batch.tokens, batch.lengths)))
            by_row = [vectors[batch.rows.tolist().index(row)] for row in range(2 * size)]
            first, second = by_row[:size], by_row[size:]
            scores += [naive_p1(first, second), naive_p1(second, first)]
    assert pairs == 27
    assert result["p1_by_language"] == {
        "de": pytest.approx(sum(scores[:2]) / 2),
        "fr": pytest.approx(sum(scores[2:]) / 2),
    }
    assert result["p1"] == pytest.approx(sum(scores) / len(scores))
    for name, value in sums.items():
        assert result[name] == pytest.approx(value / pairs, rel=1e-5), name


# --- it learns


def test_the_loss_falls_and_p1_rises_in_60_steps(toy, tmp_path):
    out = toy.train(tmp_path, train={"steps": 60, "batch_pairs": 32}, model={"width": 32})
    assert [row["step"] for row in rows(out, "train")] == [50, 60]
    validation = rows(out, "validation")
    assert [row["step"] for row in validation] == [0, 10, 20, 30, 40, 50, 60]
    first, last = validation[0], validation[-1]
    for part in ("xtr", "contrastive", "total"):
        assert last[part] < 0.8 * first[part], part
    assert last["p1"] > first["p1"] + 20
    for row in validation:
        assert list(row["p1_by_language"]) == ["de", "fr"]
        assert row["p1"] == pytest.approx(sum(row["p1_by_language"].values()) / 2, rel=1e-5)
    assert last["pairs"] == 60 * 32
