"""Laws of numbers at their bounds: what computes with them works there, to finite results."""

import math
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from made.experiments import SCHEMAS, ends
from made.train import MODEL, rows

from ems.bench import probe
from ems.bench.nearest import nearest
from ems.config.benchmarks import ProbeSettings
from ems.config.train import TrainSettings
from ems.text.subwords import quotas
from ems.train.checkpoint import Keep, _folder, checkpoints
from ems.train.distributed import dropout_seed
from ems.train.step import learning_rate

SHARED = SCHEMAS["experiment"]["$defs"]
TRAIN = SHARED["TrainOverrides"]["properties"]
MODELS = SHARED["EncoderSettings"]["properties"]
SEEDS = ends(TRAIN["seed"])
STEPS = ends(TRAIN["steps"])
DROPOUT = ends(MODELS["dropout"])
RATES = ends(TRAIN["learning_rate"])
LINES = SHARED["CorpusEntry"]["properties"]["max_pairs"]["oneOf"][0]["maximum"]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_random_generator_here_takes_the_seed(toy, seed):
    step, parts = STEPS[1], TRAIN["grad_cache"]["maximum"]
    for key in (seed, dropout_seed(seed, step, rank=31, part=parts)):
        torch.manual_seed(key)
    np.random.RandomState(seed).choice(9, 3)
    np.random.SeedSequence((seed, 500)).spawn(3)
    random.Random(f"{seed}/vocabulary").random()
    batch = toy.store("training").draw(seed, step, 8, 1.0)
    assert batch.pairs == 8


@pytest.mark.parametrize("alpha", ends(TRAIN["sampling_alpha"]))
def test_pairs_are_drawn_of_a_billion_and_of_one(toy, alpha):
    store = toy.store("training")
    store.__dict__["sizes"] = np.array([LINES, 1])
    with np.errstate(all="raise"):
        chosen, within = store.drawn(1, 2, 1000, alpha)
    assert set(chosen.tolist()) <= {0, 1}
    assert (within >= 0).all()
    assert (within < store.sizes[chosen]).all()


@pytest.mark.parametrize("temperature", [1, 100])
def test_a_sample_is_shared_by_a_billion_lines_and_one(temperature):
    quota = quotas({"de": LINES, "en": LINES, "fr": 1}, LINES, temperature)
    assert sum(quota.values()) == LINES
    assert quota["fr"] <= 1


@pytest.mark.parametrize("schedule", TRAIN["schedule"]["enum"])
@pytest.mark.parametrize("peak", RATES)
def test_every_rate_of_every_schedule_is_finite_and_not_negative(schedule, peak):
    low, high = STEPS
    for warmup in (low, 1, high):
        for period in (1, high):
            for step in (0, 1, high - 1):
                names = {"learning_rate": peak, "warmup_steps": warmup, "schedule": schedule}
                settings = TrainSettings(steps=high, schedule_steps=period, **names)
                assert 0 <= learning_rate(step, settings) <= peak


def test_checkpoints_sort_by_their_steps(tmp_path):
    steps = [1, 9_999_999, 10_000_000, STEPS[1]]
    for step in reversed(steps):
        _folder(tmp_path, step).mkdir()
    assert checkpoints(tmp_path) == [_folder(tmp_path, step) for step in steps]
    most = TRAIN["keep_checkpoints"]["maximum"]
    assert Keep(most, most, STEPS[1], STEPS[1]).kept(steps) == set(steps)


def test_of_fewer_items_than_neighbours_all_are():
    vectors = np.eye(5, dtype=np.float32)
    most = SHARED["SearchProtocol"]["properties"]["k"]["maximum"]
    assert [neighbours.index.shape for neighbours in nearest(vectors, vectors, most)] == [
        (5, 5),
        (5, 5),
    ]


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
    "train": {"batch_pairs": 2, "learning_rate": RATES[0], "warmup_steps": 0}
    | {"sampling_alpha": 0, "corpus_share": ends(TRAIN["corpus_share"])[0], "validate_every": 1}
    | {"weight_decay": 0, "checkpoint_every": 1, "keep_checkpoints": 1, "seed": SEEDS[0]},
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
    "train": {"warmup_steps": STEPS[1], "schedule_steps": STEPS[1], "sampling_alpha": 10}
    | {"weight_decay": 1, "validate_every": STEPS[1], "checkpoint_every": STEPS[1]}
    | {"keep_checkpoints": 1000, "average_checkpoints": 1000, "seed": SEEDS[1]},
}


@pytest.mark.parametrize("settings", [LOWEST, HIGHEST], ids=["lowest", "highest"])
def test_a_training_at_its_bounds_has_finite_losses(toy, tmp_path, settings):
    train = {**settings["train"], "steps": 2}
    model = toy.train(tmp_path / "bounds", **{**settings, "train": train})
    assert all(math.isfinite(rows(model, part)[-1]["total"]) for part in ("train", "validation"))


PROBES = {
    "lowest": ProbeSettings(
        hidden=[1], dropout=DROPOUT[0], learning_rate=RATES[0], batch=1, epochs=1
    ),
    "highest": ProbeSettings(
        hidden=[4096],
        activation="relu",
        dropout=DROPOUT[1],
        learning_rate=1.0,
        batch=1_000_000,
        epochs=3,
        patience=100_000,
    ),
}


@pytest.mark.parametrize("settings", PROBES.values(), ids=PROBES.keys())
def test_a_classifier_at_its_bounds_answers(settings):
    pool = probe.Pool.from_vectors(torch.eye(8))
    labels = torch.arange(8) % 2
    decays = ends(TRAIN["weight_decay"])
    runs = [probe.Run((SEEDS[1], 500), range(6), range(6, 8), decay) for decay in decays]
    for classifier in probe.train(pool, labels, 2, runs, settings, "bounds"):
        assert set(classifier.predict(pool, range(8)).tolist()) <= {0, 1}
