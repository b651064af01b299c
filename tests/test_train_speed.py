"""Laws of what is logged about speed, of drawing ahead, and of memory."""

import multiprocessing
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from made.train import contents, json_rows
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from ems.base.files import sha256_file, write_json
from ems.model.objectives.system import DeviceBatch, System
from ems.shards.reader import Batch, PairStore
from ems.train import step as step_module
from ems.train.data import Data
from ems.train.job import train
from ems.train.measures import Meter, peak_of, step_flops
from ems.train.step import AHEAD, prefetch

CPU = torch.device("cpu")


# --- FLOPs


def addmm_flops(added, first, second, **_):
    return 2 * first[0] * first[1] * second[1]


def counted(system, batch, backward):
    known = {torch.ops.aten.addmm_: addmm_flops}  # torch knows only the one not in place
    counter = FlopCounterMode(display=False, custom_mapping=known)
    with sdpa_kernel(SDPBackend.MATH), counter:
        if backward:
            system(batch)["total"].backward()
        else:
            with torch.no_grad():
                system(batch)
    return counter.get_total_flops()


NO_XTR, NO_CONTRASTIVE = {"xtr": {"weight": 0}}, {"contrastive": {"weight": 0}}
OBJECTIVES = [
    {},
    {"head": {"output": "shared"}},
    {**NO_XTR, "contrastive": {"width": 0}},
    {**NO_XTR, "contrastive": {"negatives": 8}},
    {**NO_XTR, "contrastive": {"both_sides": True}},
    {**NO_XTR, "ugt": {"weight": 1}},
    {**NO_XTR, **NO_CONTRASTIVE, "smlm": {"weight": 1}, "align": {"weight": 1}},
    {"mlm": {"weight": 1}, "similarity": {"weight": 1}},
    {"matryoshka": {"weight": 1, "dimensions": [2, 8]}},
]


@pytest.mark.parametrize("objectives", OBJECTIVES, ids=str)
@pytest.mark.parametrize("length", [1, 7])
def test_the_flops_of_a_step_are_those_that_torch_counts(toy, objectives, length):
    """On sentences of one length, where nothing is padded."""
    still = {"dropout": 0.0, "attention_dropout": 0.0, "layers": 2}
    experiment = toy.experiment(model=still, objectives=objectives)
    system = System(experiment.systems["ems"], 3, 300)
    pairs = 40
    lengths = np.full(2 * pairs, length)
    tokens = 10 + np.arange(lengths.sum()) % 290
    rows = np.arange(2 * pairs)
    batch = system.prepared(Batch(tokens, lengths, rows, rows // pairs), 0, 0)
    flops = step_flops(system, lengths)
    assert flops == 3 * counted(system, DeviceBatch.copy(batch, CPU), backward=False)
    assert flops == counted(system, DeviceBatch.copy(batch, CPU), backward=True)


def test_the_peak_of_a_gpu_is_found_by_its_name():
    names = {
        "NVIDIA H200": (989e12, 67e12),
        "NVIDIA H100 80GB HBM3": (989e12, 67e12),
        "NVIDIA H100 PCIe": (756e12, 51e12),
        "NVIDIA A100-SXM4-80GB": (312e12, 19.5e12),
        "NVIDIA L40S": (362e12, 91.6e12),
        "Tesla V100-SXM2-32GB": (None, 15.7e12),
        "Some other": (None, None),
    }
    assert names == {name: tuple(peak_of(name, half) for half in (True, False)) for name in names}


def test_a_meter_tells_the_rates_since_it_was_read():
    meter = Meter(peak=1e6, since=100.0)
    meter.add(pairs=30, tokens=1000, flops=600_000, waited=0.5)
    meter.add(pairs=30, tokens=1000, flops=600_000, waited=0.1)
    text = meter.read(102.0)
    assert text == "30 pairs/s, 1,000 tokens/s, MFU 60.0 %, 30.0 % waiting for data"
    meter.add(pairs=8, tokens=80, flops=1, waited=0.0)
    assert meter.read(103.0).startswith("8 pairs/s, 80 tokens/s, MFU 0.0 %, 0.0 %")
    assert "MFU -" in Meter().read(time.monotonic())


def test_the_times_hold_the_tokens_read_and_the_seconds_waited(toy, tmp_path):
    toy.train(tmp_path)
    store = toy.store("training")
    tokens = [0, *np.cumsum([store.draw(3, t, 8, 0.5).lengths.sum() for t in range(30)]).tolist()]
    times = json_rows(tmp_path / "times.jsonl")
    assert [row["tokens"] for row in times] == [tokens[row["step"]] for row in times]
    assert all(0 <= row["wait"] <= row["seconds"] for row in times)
    assert b"wait" not in contents(tmp_path / "model")["losses.jsonl"]


# --- drawing ahead


def test_batches_come_in_order_and_no_more_than_three_wait():
    made = []

    def make(step):
        made.append(step)
        return step * step

    with closing(prefetch(make, range(5, 50))) as batches:
        assert [next(batches) for _ in range(10)] == [step * step for step in range(5, 15)]
        assert drawing()
        time.sleep(0.3)
        assert len(made) == 10 + AHEAD
    assert made == list(range(5, 5 + len(made)))
    assert not drawing()
    assert list(prefetch(make, range(2))) == list(prefetch(make, range(2), ahead=0)) == [0, 1]
    assert not drawing()


def drawing():
    """The threads that draw."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


def test_an_error_while_drawing_is_raised_where_the_batch_is_asked_for():
    def make(step):
        if step == 3:
            raise OSError("the disk is gone")
        return step

    with closing(prefetch(make, range(10))) as batches:
        assert [next(batches) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(OSError, match="the disk is gone"):
            next(batches)


def test_drawing_ahead_changes_no_byte_of_the_model(toy, never_killed, tmp_path, monkeypatch):
    used = []

    def spy(draw, steps, ahead):
        assert ahead == 0  # one thread on a CPU
        for batch in prefetch(draw, steps):
            used.append(len(drawing()))
            yield batch

    monkeypatch.setattr(step_module, "prefetch", spy)
    assert contents(toy.train(tmp_path)) == contents(never_killed)
    assert used == [1] * 30


# --- memory


def big_shard(toy, folder, pairs):
    """A shard of random tokens, ten a sentence, as the writer leaves one."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(pairs)
    for code in ("de", "en"):
        random.integers(3, 300, 10 * pairs, np.uint16).tofile(folder / f"{code}.ids")
        (10 * np.arange(pairs + 1, dtype=np.int64)).tofile(folder / f"{code}.offsets")
    np.arange(1, pairs + 1, dtype=np.int64).tofile(folder / "lines")
    manifest = {
        "languages": ["de", "en"],
        "pairs": pairs,
        "tokens": {"de": 10 * pairs, "en": 10 * pairs},
        "vocabulary_sha256": sha256_file(toy.vocabulary),
        "sha256": {path.name: sha256_file(path) for path in sorted(folder.iterdir())},
    }
    write_json(folder / "manifest.json", manifest)
    return folder


def anonymous_memory(toy, shards, folder, out):
    """Train 60 steps in this process; write its anonymous memory after the last, in bytes."""
    experiment = toy.experiment(train={"steps": 60, "batch_pairs": 64, "checkpoint_every": 60})
    data = Data(PairStore(shards, ["en", "de", "fr"], 20), None, toy.vocabulary)
    train(experiment, "ems", data, folder / "model", folder / "state")
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    out.value = int(status["RssAnon"].split()[0]) * 1024


def test_anonymous_memory_does_not_grow_with_the_corpus(toy, tmp_path):
    """Four shards of 8,000 pairs, and of 16 times as many: 31 MB more on disk."""
    context = multiprocessing.get_context("forkserver")
    memory = []
    for pairs in (8_000, 128_000):
        shards = [big_shard(toy, tmp_path / f"{pairs}-{at}/c/v/de-en/0", pairs) for at in range(4)]
        out = context.Value("q", 0)
        arguments = (toy, shards, tmp_path / f"run{pairs}", out)
        process = context.Process(target=anonymous_memory, args=arguments)
        process.start()
        process.join(120)
        assert process.exitcode == 0
        memory.append(out.value)
    assert memory[0] > 0
    assert memory[1] - memory[0] < 8e6, memory
