"""Laws of numbers: every one has bounds, the defaults lie within them, what computes with a number
works at its bounds to finite results, and a number beyond them is one line.
"""

import argparse
import math
import random
import subprocess
import sys
from itertools import product
from typing import get_args

import numpy as np
import pytest
import torch
from jsonschema import Draft202012Validator as Validator
from made.experiments import MINIMAL, SCHEMAS, changed, edited, ends, one_line, parts_of
from made.train import MODEL, rows

from ems.base.schema import checked
from ems.bench import probe
from ems.bench.nearest import nearest
from ems.commands import COMMANDS, cli
from ems.commands.flags import Bounds, flags_of
from ems.config.benchmarks import ProbeSettings
from ems.config.file import experiment_model
from ems.config.train import TrainSettings
from ems.text.subwords import quotas
from ems.train.checkpoint import Keep, _folder, checkpoints
from ems.train.distributed import dropout_seed
from ems.train.step import learning_rate

LOW, HIGH = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")


ALL = [(name, path, part) for name, schema in SCHEMAS.items() for path, part in parts_of(schema)]


def test_every_number_has_finite_bounds_in_order_and_every_default_is_allowed():
    numbers = [(path, part) for _, path, part in ALL if part.get("type") in ("integer", "number")]
    assert len(numbers) > 60
    assert not any(isinstance(part.get("type"), list) for _, _, part in ALL)  # it would hide one
    for path, part in numbers:
        (low,) = [part[name] for name in LOW if name in part]
        (high,) = [part[name] for name in HIGH if name in part]
        assert -math.inf < low < high < math.inf, path
    for name, _, part in ALL:
        if "default" in part:
            schema = {"$defs": SCHEMAS[name].get("$defs", {}), **part}
            Validator(schema).validate(part["default"])
    for schema in SCHEMAS.values():
        Validator.check_schema(schema)


NEEDED = {("clean", "similarity"): "model", ("clean", "commands", "[]"): "filter"}
SECTIONS = {"seed", "evalsets", "clean", "vocabulary", "documents", "probes", "splits", "corpora"}
SECTIONS |= {"model", "objectives", "train"}
LEAVES = [
    pytest.param(path, part, id=".".join(path))
    for path, part in parts_of(SCHEMAS["experiment"])
    if part.get("type") in ("integer", "number") and path[0] in SECTIONS
]


def nested(path, value):
    """{"train": {"steps": value}} of a path; an item is the only one of its list."""
    for at, key in reversed(list(enumerate(path))):
        value = [value] if key == "[]" else {key: value}
        if path[:at] in NEEDED:
            value[NEEDED[path[:at]]] = "x"
    return value


def with_number(path, value):
    if path[0] == "corpora":
        needed = {"max_pairs": {}, "documents": {"folder": "x"}}.get(path[2])
        front, own = (path, ()) if needed is None else (path[:3], path[3:])
        value = nested(own, value)
        value = {**needed, **value} if needed and own else value
        return edited(MINIMAL, ".".join(["corpora", "0", *front[2:]]), value)
    version = {"evalsets": {path[1]: {"version": "v"}}} if path[0] == "evalsets" else {}
    return changed(changed(MINIMAL, version), nested(path, value))


@pytest.mark.parametrize(("path", "part"), LEAVES)
def test_a_number_may_lie_at_its_bounds_and_not_beyond_them(path, part):
    model, key = experiment_model(), ".".join(path[-1:]).replace("[]", "0")
    low, high = ends(part)
    for value in (low, high):
        checked(model, with_number(path, value), "mine.yaml")
    beyond = [low - 1, 2 * high + 1, 10**400, -(10**400), 1e300, math.nan, math.inf, -math.inf]
    others = [] if "parameters" in path else [str(low), True]  # a program's parameter may be these
    for value in (*beyond, *others, None):
        message = one_line(checked, model, with_number(path, value), "mine.yaml")
        assert key in message
        assert len(message) < 900


# --- what computes at the bounds

SHARED = SCHEMAS["experiment"]["$defs"]
TRAIN = SHARED["TrainOverrides"]["properties"]
MODELS = SHARED["EncoderSettings"]["properties"]
SEEDS, STEPS, RATES = (ends(TRAIN[name]) for name in ("seed", "steps", "learning_rate"))
DROPOUT = ends(MODELS["dropout"])
LINES = SHARED["CorpusEntry"]["properties"]["max_pairs"]["oneOf"][0]["maximum"]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_random_generator_takes_the_seed(toy, seed):
    step, most = STEPS[1], TRAIN["grad_cache"]["maximum"]
    for key in (seed, dropout_seed(seed, step, rank=31, part=most)):
        torch.manual_seed(key)
    np.random.RandomState(seed).choice(9, 3)
    np.random.SeedSequence((seed, 500)).spawn(3)
    random.Random(f"{seed}/vocabulary").random()
    assert toy.store("training").draw(seed, step, 8, 1.0).pairs == 8


@pytest.mark.parametrize("alpha", ends(TRAIN["sampling_alpha"]))
def test_pairs_are_drawn_of_a_billion_and_of_one(toy, alpha):
    store = toy.store("training")
    store.__dict__["sizes"] = np.array([LINES, 1])
    with np.errstate(all="raise"):
        chosen, within = store.draw_indices(1, 2, 1000, alpha)
    assert set(chosen.tolist()) <= {0, 1}
    assert ((within >= 0) & (within < store.sizes[chosen])).all()


@pytest.mark.parametrize("temperature", [1, 100])
def test_a_sample_is_shared_by_a_billion_lines_and_one(temperature):
    quota = quotas({"de": LINES, "en": LINES, "fr": 1}, LINES, temperature)
    assert sum(quota.values()) == LINES
    assert quota["fr"] <= 1


@pytest.mark.parametrize("schedule", TRAIN["schedule"]["enum"])
@pytest.mark.parametrize("peak", RATES)
def test_every_rate_of_every_schedule_is_finite_and_not_negative(schedule, peak):
    low, high = STEPS
    names = {"steps": high, "learning_rate": peak, "schedule": schedule}
    for warmup, period, step in product((low, 1, high), (1, high), (0, 1, high - 1)):
        settings = TrainSettings(**names, warmup_steps=warmup, schedule_steps=period)
        assert 0 <= learning_rate(step, settings) <= peak


def test_checkpoints_sort_by_their_steps(tmp_path):
    steps = [1, 9_999_999, 10_000_000, STEPS[1]]
    for step in reversed(steps):
        _folder(tmp_path, step).mkdir()
    assert checkpoints(tmp_path) == [_folder(tmp_path, step) for step in steps]
    most = TRAIN["keep_checkpoints"]["maximum"]
    settings = {"keep_checkpoints": most, "average_checkpoints": most, "steps": STEPS[1]}
    assert Keep(TrainSettings(**settings, checkpoint_every=STEPS[1])).kept(steps) == set(steps)


def test_of_fewer_items_than_neighbours_all_are():
    vectors = np.eye(5, dtype=np.float32)
    most = SHARED["SearchProtocol"]["properties"]["k"]["maximum"]
    assert [found.index.shape for found in nearest(vectors, vectors, most)] == [(5, 5), (5, 5)]


@pytest.mark.slow
def test_as_many_threads_as_are_allowed_do_work():
    program = (
        "import sys, torch; torch.set_num_threads(int(sys.argv[1]));"
        "a = torch.ones(600, 600, requires_grad=True); (a @ a).tanh().sum().backward()"
    )
    most = TRAIN["threads"]["maximum"]
    subprocess.run([sys.executable, "-c", program, str(most)], check=True)


LOWEST = {
    "model": {"layers": 0, "width": 4, "heads": 1, "feed_forward": 1, "norm_eps": 1e-30},
    "objectives": {
        "head": {"language_width": 0},
        "contrastive": {"width": 0, "temperature": 0.001},
    },
    "train": {"batch_pairs": 2, "learning_rate": RATES[0], "warmup_steps": 0, "sampling_alpha": 0}
    | {"corpus_share": ends(TRAIN["corpus_share"])[0], "validate_every": 1, "weight_decay": 0}
    | {"checkpoint_every": 1, "keep_checkpoints": 1, "seed": SEEDS[0]},
}
HIGHEST = {
    "model": {**MODEL, "dropout": DROPOUT[1], "attention_dropout": DROPOUT[1], "norm_eps": 1}
    | {"feed_forward": MODELS["feed_forward"]["maximum"]},
    "objectives": {
        "head": {"dropout": DROPOUT[1]},
        "xtr": {"weight": 1_000_000, "sampled": 65535},
        "contrastive": {"weight": 1_000_000, "width": 32768, "temperature": 100, "margin": 2}
        | {"margin_warmup_steps": STEPS[1]},
        "similarity": {"weight": 1_000_000},
    },
    "train": {"sampling_alpha": 10, "weight_decay": 1, "keep_checkpoints": 1000, "seed": SEEDS[1]}
    | {"average_checkpoints": 1000, "warmup_steps": STEPS[1], "schedule_steps": STEPS[1]}
    | {"validate_every": STEPS[1], "checkpoint_every": STEPS[1]},
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [LOWEST, HIGHEST], ids=["lowest", "highest"])
def test_a_training_at_its_bounds_has_finite_losses(toy, tmp_path, settings):
    train = {**settings["train"], "steps": 2}
    model = toy.train(tmp_path / "bounds", **{**settings, "train": train})
    assert all(math.isfinite(rows(model, part)[-1]["total"]) for part in ("train", "validation"))


SMALL = {"hidden": [1], "dropout": DROPOUT[0], "learning_rate": RATES[0], "batch": 1, "epochs": 1}
LARGE = {"hidden": [4096], "activation": "relu", "dropout": DROPOUT[1], "learning_rate": 1.0}
LARGE |= {"batch": 1_000_000, "epochs": 3, "patience": 100_000}


@pytest.mark.parametrize("settings", [SMALL, LARGE], ids=["lowest", "highest"])
def test_a_classifier_at_its_bounds_answers(settings):
    pool, labels = probe.Pool.from_vectors(torch.eye(8)), torch.arange(8) % 2
    decays = ends(TRAIN["weight_decay"])
    runs = [probe.Run((SEEDS[1], 500), range(6), range(6, 8), decay) for decay in decays]
    for classifier in probe.train(pool, labels, 2, runs, ProbeSettings(**settings), "bounds"):
        assert set(classifier.predict(pool, range(8)).tolist()) <= {0, 1}


# --- the command line

NUMBERS = {  # label -> the first command that has it, the flag
    flag.label: (name, flag)
    for name, command in COMMANDS.items()
    for flag in flags_of(command)
    if int in (flag.type, *get_args(flag.type))
}

NO_NUMBERS = ["1" * 31, "9" * 5000, "nan", "inf", "-1", "1e3", "1.5", "1_0", "0x1", "１", "", " 1"]


@pytest.mark.parametrize("flag", NUMBERS)
def test_a_flag_takes_whole_numbers_from_bound_to_bound_and_nothing_else(flag, capsys):
    """docs/cli.md has the bounds."""
    (command, parsed), parser = NUMBERS[flag], argparse.ArgumentParser()
    parsed.add_to(parser)
    low, high = parsed.note(Bounds).low, parsed.note(Bounds).high
    assert low < high
    for number in (low, high):
        assert list(vars(parser.parse_args([flag, str(number)])).values()) == [number]
    for text in (*NO_NUMBERS, str(low - 1), str(high + 1)):
        with pytest.raises(SystemExit, match="2"):
            cli.main([command, flag, text])
        last = capsys.readouterr().err.splitlines()[-1]
        assert f"argument {flag}: expected a whole number from {low:,} to {high:,}, found" in last
        assert len(last) < 200


def raises(error):
    def action():
        raise error

    return action


OUT_OF_MEMORY = {
    "Python": lambda: bytearray(1 << 62),
    "NumPy": lambda: np.ones((1 << 20, 1 << 20, 100)),
    "PyTorch": lambda: torch.ones(1 << 45),
    "CUDA": raises(torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 2 GiB")),
    "cuBLAS": raises(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublas")),
    "driver": raises(RuntimeError("CUDA error: out of memory")),
}


@pytest.mark.parametrize("action", OUT_OF_MEMORY.values(), ids=OUT_OF_MEMORY.keys())
def test_a_stage_that_runs_out_of_memory_says_so_in_one_line(monkeypatch, capsys, action):
    monkeypatch.setitem(COMMANDS, "index", lambda: action())
    assert cli.main(["index"]) == 1
    _, line = capsys.readouterr().err.splitlines()
    assert "error: out of memory" in line
    assert "train.batch_pairs" in line
    assert len(line) < 500


@pytest.mark.parametrize("shown", [False, True])
def test_any_other_error_is_one_line_that_says_where_it_happened(shown, monkeypatch, capsys):
    if shown:
        monkeypatch.setenv("EMS_TRACEBACK", "1")
    monkeypatch.setitem(COMMANDS, "index", raises(RuntimeError("mat1 and\n mat2" + "x" * 9000)))
    assert cli.main(["index"]) == 1
    _, line, *more = capsys.readouterr().err.splitlines()
    assert "a fault of EMS at ems/commands/cli.py:" in line
    assert "(RuntimeError: mat1 and\\n mat2xx" in line
    assert len(line) < 1100
    assert ("Traceback (most recent call last):" in more) == bool(more) == shown
