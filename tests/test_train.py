"""Laws of training: same seed same bytes, resumed equals uninterrupted, nothing half written."""

import itertools
import json
import math
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import needs
from made.bench import naive_hits
from made.experiments import MINIMAL, Settings, edited
from made.shards import contents, in_order
from made.train import LANGUAGES, json_rows, rows, train_into, train_until, weights_of
from safetensors import SafetensorError
from safetensors.torch import load_file

from ems.base.errors import EmsError
from ems.config import train as train_settings
from ems.config.stages import stage_hash
from ems.config.train import TrainSettings
from ems.model import devices
from ems.model.devices import Adam, has_bfloat16
from ems.model.encode import SentenceEncoder
from ems.model.objectives.system import DeviceBatch, System
from ems.text.subwords import load_vocabulary
from ems.train import job, journal
from ems.train.job import claimed, train
from ems.train.measures import rounded, scalars
from ems.train.step import learning_rate
from ems.train.validate import validate

pytestmark = pytest.mark.usefixtures("logged")


LEARNT = ("model.safetensors", "heads.safetensors", "losses.jsonl")
STILL = {"dropout": 0.0, "attention_dropout": 0.0}


def saved(state):
    return {path.name: contents(path) for path in state.glob("step-*")}


def learnt(folder):
    return {name: contents(folder)[name] for name in LEARNT}


def test_two_threads_give_the_same_bytes_again(toy, tmp_path):
    two = {"threads": 2, "steps": 10}
    first, second = (toy.train(tmp_path / name, train=two) for name in ("a", "b"))
    assert contents(first) == contents(second)


@pytest.mark.slow
def test_a_seed_of_a_system_replaces_the_seed_of_the_experiment(toy, never_killed, tmp_path):
    own, same = (
        learnt(toy.train(tmp_path / str(seed), systems={"ems": {"train": {"seed": seed}}}))
        for seed in (2, 3)
    )
    assert own == learnt(toy.train(tmp_path / "other", seed=2))
    assert all(own[name] != content for name, content in learnt(never_killed).items())
    assert same == learnt(never_killed)  # the experiment's seed is 3


def test_a_system_that_another_process_trains_now_is_left_alone(toy, tmp_path):
    state = train_until(toy, tmp_path, 10)
    before = saved(state)
    with claimed(state.parent), pytest.raises(EmsError, match="another process"):
        toy.train(tmp_path)
    assert saved(state) == before


def test_no_step_at_all_writes_the_untrained_model(toy, tmp_path):
    out = toy.train(tmp_path, train={"steps": 0})
    torch.manual_seed(3)
    expected = System(toy.experiment().systems["ems"], 3, 300).state_dict()
    assert weights_of(out).keys() == expected.keys()
    assert all(torch.equal(value, expected[name]) for name, value in weights_of(out).items())
    assert rows(out, "train") == []
    assert [row["step"] for row in rows(out, "validation")] == [0]


def test_the_model_folder_says_how_to_prepare_a_text(toy, tmp_path):
    for kept in ("keep", "drop"):
        changes = {"segmenters": {"default": "sacremoses", "fr": "none"}}
        changes |= {"train": {"steps": 0}, "clean": {"format_characters": kept}}
        encoder = SentenceEncoder(toy.train(tmp_path / kept, **changes))
        assert encoder.segmenters == dict.fromkeys(["und", "en", "de"], "sacremoses") | {
            "fr": "none"
        }
        soft, plain = (tokens.tolist() for tokens in encoder.tokenise(["ba\u00adko", "bako"], "en"))
        assert (soft == plain) == (kept == "drop")


READERS = {".safetensors": load_file, ".jsonl": json_rows, ".model": load_vocabulary}
READERS |= {".json": lambda path: json.loads(path.read_text())}


def test_no_file_is_a_pickle(toy, never_killed, tmp_path):
    """Nothing that is loaded can run code."""
    state = train_until(toy, tmp_path, 10)
    files = [path for path in [*state.rglob("*"), *never_killed.rglob("*")] if path.is_file()]
    assert len(files) == 2 * 5 + 1 + 5  # two checkpoints, their identity, one model
    assert all(READERS[path.suffix](path) for path in files)


def test_a_disk_that_is_full_at_the_end_loses_nothing(toy, never_killed, tmp_path, monkeypatch):
    def fail(tensors, path, metadata):
        Path(path).write_bytes(b"half")
        raise SafetensorError("No space left on device")

    state = train_until(toy, tmp_path, 30)
    before = saved(state)
    monkeypatch.setattr(devices, "save_file", fail)
    with pytest.raises(EmsError, match=r"cannot write .*model\.safetensors.*No space left"):
        toy.train(tmp_path)
    assert saved(state) == before
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.glob("model/model.*"))
    monkeypatch.undo()
    assert contents(toy.train(tmp_path)) == contents(never_killed)


@pytest.mark.parametrize("steps", [1, 20])
def test_a_run_that_diverges_writes_no_model(steps, toy, tmp_path):
    """Even if the last step spoils the weights, of which no loss is computed."""
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


def test_validation_changes_no_bit_of_the_training(toy, never_killed, tmp_path):
    often = toy.train(tmp_path / "often", train={"validate_every": 1})
    never = toy.train(tmp_path / "never", held_out=False)
    assert len(rows(often, "validation")) == 31
    assert rows(never, "validation") == []
    for file in ("model.safetensors", "heads.safetensors"):
        expected = (never_killed / file).read_bytes()
        assert (often / file).read_bytes() == (never / file).read_bytes() == expected


def test_validation_is_without_dropout_and_leaves_train_mode(toy):
    torch.manual_seed(2)  # both directions differ in P@1
    settings = toy.experiment(model={"dropout": 0.5, "attention_dropout": 0.5}).systems["ems"]
    system, store = System(settings, 3, 300).train(), toy.store("validation")
    before = torch.get_rng_state()
    result = validate(system, store, batch_pairs=6)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training for module in system.modules())
    assert all(parameter.grad is None for parameter in system.parameters())

    system.eval()
    batches, wholes = (list(in_order(store, size)) for size in (6, 1000))
    pairs = [batch.pairs for batch in batches]
    assert sum(pairs) == 20 + 7  # an eighth of the training pairs
    with torch.no_grad():
        parts = [system(DeviceBatch.copy(batch, torch.device("cpu"))) for batch in batches]
        vectors = [
            system.encoder(torch.from_numpy(whole.tokens), torch.from_numpy(whole.lengths))
            for whole in wholes
        ]
    for name in ("xtr", "contrastive", "total"):
        mean = np.average([part[name].item() for part in parts], weights=pairs)
        assert result[name] == pytest.approx(mean, rel=1e-5), name
    sides = [v[np.argsort(w.rows)].chunk(2) for v, w in zip(vectors, wholes, strict=True)]
    scores = [
        [100 * np.mean(naive_hits(*map(torch.Tensor.tolist, pair))) for pair in (own, own[::-1])]
        for own in sides
    ]
    assert scores[0][0] != scores[0][1]
    by_language = dict(zip(("de", "fr"), np.mean(scores, axis=1), strict=True))
    assert result["p1_by_language"] == pytest.approx(by_language)
    assert result["p1"] == pytest.approx(np.mean(scores))


def test_the_loss_falls_and_p1_rises_in_60_steps(toy, tmp_path):
    out = toy.train(tmp_path, train={"steps": 60, "batch_pairs": 32}, model={"width": 32})
    assert [row["step"] for row in rows(out, "train")] == [50, 60]
    first, *others, last = rows(out, "validation")
    assert [row["step"] for row in others] == [10, 20, 30, 40, 50]
    assert all(last[part] < 0.8 * first[part] for part in ("xtr", "contrastive", "total"))
    assert last["p1"] > first["p1"] + 20
    assert last["pairs"] == 60 * 32


HALF = {"precision": "bfloat16"}


def test_the_logits_of_xtr_are_bfloat16_but_never_float16(toy, monkeypatch):
    softmax, seen, losses = torch.softmax, [], set()
    monkeypatch.setattr(torch, "softmax", lambda x, **o: seen.append(x.dtype) or softmax(x, **o))
    settings, batch = toy.experiment().systems["ems"], toy.store("training").draw(1, 1, 64, 1.0)
    for precision in ("float32", "bfloat16", "float16"):
        torch.manual_seed(0)
        system = System(settings, len(LANGUAGES), 300, precision)
        parts = system(DeviceBatch.copy(batch, torch.device("cpu")))
        parts["total"].backward()
        losses.add(parts["contrastive"].item())
    assert seen == [torch.float32, torch.bfloat16, torch.float32]
    assert len(losses) == 3  # the encoder is in half precision too


def test_weights_stay_float32_also_on_disk(toy, tmp_path):
    state = train_until(toy, tmp_path, 10, train=HALF)
    tensors = [load_file(path) for path in state.rglob("*.safetensors")]
    tensors += [load_file(path) for path in toy.train(tmp_path, train=HALF).glob("*.safetensors")]
    assert len(tensors) == 2 * 2 + 2  # two checkpoints, one model
    assert {value.dtype for each in tensors for value in each.values()} == {torch.float32}


NO_UNITS = "train.precision: cpu has no bfloat16 units"
WARNINGS = [  # the machine has units for bfloat16, settings, the warning
    (False, HALF, NO_UNITS),
    (True, HALF, ""),
    (False, {}, ""),
    (True, {"steps": 2, "warmup_steps": 3}, "train.warmup_steps: 3, but training ends after 2"),
    (True, {"steps": 2, "warmup_steps": 2}, ""),
]


@pytest.mark.parametrize(("able", "settings", "warning"), WARNINGS)
def test_some_settings_give_warnings(toy, tmp_path, monkeypatch, caplog, able, settings, warning):
    monkeypatch.setattr(job, "has_bfloat16", lambda device: able)
    caplog.set_level("WARNING", "ems")
    toy.train(tmp_path, train={"steps": 0} | settings)
    assert warning in caplog.text
    assert bool(caplog.records) == bool(warning)


def test_pytorch_2_6_knows_no_capabilities_and_has_no_bfloat16(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert not has_bfloat16(torch.device("cpu"))


@pytest.fixture
def tick(monkeypatch):
    """Start the clock of training `at` a time; it moves a second each time it is read."""

    def start(at):
        clock = itertools.count(at)
        monkeypatch.setattr(journal, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
        monkeypatch.setattr(journal.Journal, "_note", lambda run: "")  # reads it on a slow machine

    return start


def test_each_row_of_the_loss_log_has_its_time_tokens_and_wait(toy, tmp_path):
    started = journal.time.monotonic()
    model = toy.train(tmp_path)
    took = journal.time.monotonic() - started
    times, losses = (json_rows(tmp_path / name) for name in ("times.jsonl", "model/losses.jsonl"))
    keys = ("step", "pairs")
    assert [[row[k] for k in keys] for row in times] == [[row[k] for k in keys] for row in losses]
    assert all(set(row) == {*keys, "seconds", "tokens", "wait"} for row in times)
    seconds = [row["seconds"] for row in times]
    assert seconds == sorted(seconds)
    assert 0 <= seconds[0] < seconds[-1] <= took + 0.01
    store = toy.store("training")
    tokens = [0, *np.cumsum([store.draw(3, t, 8, 0.5).lengths.sum() for t in range(30)]).tolist()]
    assert [row["tokens"] for row in times] == [tokens[row["step"]] for row in times]
    assert all(0 <= row["wait"] <= row["seconds"] for row in times)
    assert b"wait" not in contents(model)["losses.jsonl"]


@pytest.mark.parametrize(
    ("die", "steps"), [(train_until, [5, 20, 30]), (train_into, [8, 13, 13, 24])], ids=["at", "in"]
)
def test_a_resumed_run_equals_a_whole_one(die, steps, toy, never_killed, tmp_path, tick, caplog):
    """The hours between two starts do not count, nor steps that had to be repeated."""
    tick(1000)
    toy.train(tmp_path / "whole")
    for number, step in enumerate(steps):
        tick(10_000 * number)
        die(toy, tmp_path / "killed", step)
    tick(1_000_000)
    caplog.clear()
    assert contents(toy.train(tmp_path / "killed")) == contents(never_killed)
    assert f"resumed at step {steps[-1] // 5 * 5} (attempt" in caplog.text
    times = [json_rows(tmp_path / name / "times.jsonl") for name in ("killed", "whole")]
    assert times[0] == times[1]


def test_without_a_file_for_times_none_is_written(toy, tmp_path):
    out = tmp_path / "model"
    train(toy.experiment(), "ems", toy.data(), out, tmp_path / "state")
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == sorted(contents(out))
    assert (out / "model.json").exists()


COSINE = [0.15 * (1 + math.cos(math.pi * t / 12)) * min(1, (t + 1) / 5) for t in range(13)]
LINEAR = [0.15, 0.3, 0.45, 0.6, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
RATES = [  # schedule, steps, peak, warm-up, schedule_steps, rates
    ("constant", 20, 0.5, 4, None, [0.125, 0.25, 0.375] + [0.5] * 17),
    ("linear", 10, 0.6, 4, None, LINEAR),
    ("linear", 5, 0.6, 4, 10, LINEAR[:5]),  # the start of a longer run
    ("linear", 30, 0.6, 4, 10, LINEAR + [0.0] * 19),
    ("cosine", 12, 0.3, 5, None, COSINE),  # the authors' schedule, times the warm-up
    ("cosine", 5, 0.3, 5, 12, COSINE[:5]),  # they have a period of 15 epochs and stop after 3
    ("cosine", 16, 0.3, 5, 12, COSINE + [0.0] * 3),
    ("step", 8, 0.4, 2, 5, [0.2, 0.4, 0.4, 0.4, 0.4, 0.1, 0.1, 0.1]),  # a quarter from step 5 on
    ("step", 8, 0.4, 8, 5, [0.05, 0.1, 0.15, 0.2, 0.25, 0.075, 0.0875, 0.1]),  # as Lightweight
]


@pytest.mark.parametrize(("schedule", "steps", "peak", "warmup", "period", "rates"), RATES)
def test_learning_rates(schedule, steps, peak, warmup, period, rates):
    names = {"steps": steps, "learning_rate": peak, "schedule": schedule}
    names |= {"schedule_steps": period} if period else {}
    names |= {"schedule_factor": 0.25} if schedule == "step" else {}
    settings = TrainSettings(**names, warmup_steps=warmup)
    found = [learning_rate(step, settings) for step in range(len(rates))]
    assert found == pytest.approx(rates, abs=1e-15)
    assert learning_rate(0, settings.model_copy(update={"warmup_steps": 0})) == peak


@pytest.mark.parametrize(("table", "factors"), [(0, [1]), (8, [1, 3])])
def test_a_step_uses_the_rate_of_the_schedule(table, factors, toy, tmp_path, monkeypatch):
    """A table of vectors learns at `table_rate` times the rate."""
    rates, step = [], Adam.step
    spy = lambda self: rates.extend(g["lr"] for g in self.param_groups) or step(self)  # noqa: E731
    monkeypatch.setattr(Adam, "step", spy)
    toy.train(tmp_path, model={"table": table}, train={"steps": 8, "table_rate": factors[-1]})
    expected = [0.002, 0.004, 0.006, 0.008, 0.01, 0.01, 0.02 / 3, 0.01 / 3]
    assert rates == pytest.approx([rate * factor for rate in expected for factor in factors])


def test_a_run_with_amsgrad_resumes_bit_for_bit(toy, tmp_path):
    settings = {"amsgrad": True, "schedule": "cosine", "schedule_steps": 60}
    state = train_until(toy, tmp_path / "killed", 20, train=settings)
    moments = load_file(state / "step-00000020/optimizer.safetensors")
    assert any(name.endswith("max_exp_avg_sq") for name in moments)
    killed, whole = (toy.train(tmp_path / name, train=settings) for name in ("killed", "whole"))
    assert contents(killed) == contents(whole)


# --- scalars of TensorBoard: they are the loss log, and no model depends on them


ON = {"train": {"tensorboard": True}}


@pytest.fixture
def read():
    """Read a folder as TensorBoard does: tag -> [(step, value)]."""
    needs(find_spec("tensorboard"), "tensorboard is not installed (pip install -e .[tensorboard])")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

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
    monkeypatch.setattr(train_settings, "find_spec", lambda name: name)  # as if it were installed
    project = Settings(tmp_path)
    off, on = project.load(), project.load(edited(MINIMAL, "train.tensorboard", True))
    assert on.systems["ems"].train.tensorboard
    stages = {"train": {"system": "ems"}, "bench": {"system": "ems", "benchmark": "tatoeba"}}
    for stage, wildcards in (stages | {"tables": {}}).items():
        assert stage_hash(on, stage, **wildcards) == stage_hash(off, stage, **wildcards), stage


def test_without_the_package_the_setting_is_an_error(toy, monkeypatch):
    monkeypatch.setattr(train_settings, "find_spec", lambda name: None)
    with pytest.raises(EmsError, match=r"tensorboard is not installed; `pip install .*tensorboard"):
        toy.experiment(**ON)


def test_numbers_have_six_digits_at_every_depth():
    assert rounded({"a": 1.23456789, "b": {"c": 98.7654321, "d": 0}}) == {
        "a": 1.23457,
        "b": {"c": 98.7654, "d": 0.0},
    }
