"""Laws of the cost of a step: FLOPs, rates, batches drawn in advance, memory, waits for a GPU."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
from conftest import ROOT
from made.forked import peak, result
from made.golden import check, replay
from made.shards import contents, write_shard
from made.train import MODEL, weights_of
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from ems.base.errors import EmsError
from ems.base.files import sha256_file
from ems.config.model import EncoderSettings
from ems.model.encoder import Encoder
from ems.model.objectives.system import DeviceBatch, System
from ems.shards.reader import Batch, PairStore
from ems.train import step as step_module
from ems.train.data import Data
from ems.train.job import train
from ems.train.measures import Meter, peak_of, step_flops
from ems.train.memory import GradCache, check_fits, keep_freed
from ems.train.step import AHEAD, prefetch

CPU = torch.device("cpu")


def addmm_flops(added, first, second, **_):
    return 2 * first[0] * first[1] * second[1]


def counted(system, batch, backward):
    in_place = {torch.ops.aten.addmm_: addmm_flops}  # PyTorch counts the other one only
    counter = FlopCounterMode(display=False, custom_mapping=in_place)
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
def test_the_flops_of_a_step_are_what_pytorch_counts(toy, objectives, length):
    """On sentences of one length, without padding."""
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
    """In half precision and in float32, in FLOP/s."""
    replay("gpu/peaks.txt", lambda name: f"{peak_of(name, True)} {peak_of(name, False)}")


def test_a_meter_gives_the_rates_since_the_last_reading():
    meter = Meter(peak=1e6, since=100.0)
    meter.add(pairs=30, tokens=1000, flops=600_000, waited=0.5)
    meter.add(pairs=30, tokens=1000, flops=600_000, waited=0.1)
    text = meter.read(102.0)
    assert text == "30 pairs/s, 1,000 tokens/s, MFU 60.0 %, 30.0 % waiting for data"
    meter.add(pairs=8, tokens=80, flops=1, waited=0.0)
    assert meter.read(103.0).startswith("8 pairs/s, 80 tokens/s, MFU 0.0 %, 0.0 %")
    assert "MFU -" in Meter().read(time.monotonic())


def test_batches_come_in_order_and_no_more_than_three_wait():
    made = []

    def make(step):
        made.append(step)
        return step * step

    with closing(prefetch(make, range(5, 50))) as batches:
        assert [next(batches) for _ in range(10)] == [step * step for step in range(5, 15)]
        assert drawing()
        time.sleep(0.1)
        assert len(made) == 10 + AHEAD
    assert made == list(range(5, 5 + len(made)))
    assert not drawing()
    assert list(prefetch(make, range(2))) == list(prefetch(make, range(2), ahead=0)) == [0, 1]
    assert not drawing()


def drawing():
    return [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


def test_an_error_while_drawing_is_raised_with_its_batch():
    with closing(prefetch(lambda step: 1 / (3 - step), range(10))) as batches:
        assert [next(batches) for _ in range(3)] == [1 / 3, 1 / 2, 1]
        with pytest.raises(ZeroDivisionError):
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


def anonymous_memory(toy, shards, folder):
    """Train 60 steps; return the anonymous memory of this process."""
    experiment = toy.experiment(train={"steps": 60, "batch_pairs": 64, "checkpoint_every": 60})
    data = Data(PairStore(shards, ["en", "de", "fr"], 20), None, toy.vocabulary)
    train(experiment, "ems", data, folder / "model", folder / "state")
    memory = psutil.Process().memory_info()
    return memory.rss - memory.shared


@pytest.mark.slow
def test_anonymous_memory_does_not_grow_with_the_corpus(toy, tmp_path):
    """Four shards of 8,000 pairs, and of 16 times as many: 31 MB more on disk."""
    memory, sha256 = [], sha256_file(toy.vocabulary)
    for pairs in (8_000, 128_000):
        ids = np.random.default_rng(pairs).integers(3, 300, 10 * pairs)
        folders = [tmp_path / f"{pairs}-{number}/c/v/de-en/0" for number in range(4)]
        shards = [write_shard(folder, ids, [10] * pairs, sha256=sha256) for folder in folders]
        memory.append(result(anonymous_memory, toy, shards, tmp_path / f"run{pairs}") >> 20)
    assert memory[0] > 0
    assert memory[1] - memory[0] < 8, memory


PIECES = 30
SIZES = {"layers": 3, "width": 8, "heads": 2, "feed_forward": 12, "max_tokens": 9}
LENGTHS = torch.tensor([1, 1, 2, 3, 3, 4, 6, 7, 9, 9])


def step(dropout, count=0, cached=False, checkpointed=False):
    """Loss, gradients, and how often a layer ran: with all sentences at once, or in `count` parts,
    in one graph or with GradCache. The loss mixes all embeddings.
    """
    torch.manual_seed(4)
    settings = EncoderSettings(**SIZES, dropout=dropout, attention_dropout=dropout)
    encoder = Encoder(settings, PIECES).double().train()
    encoder.checkpoint_layers, runs = checkpointed, []
    encoder.layers[0].register_forward_pre_hook(lambda *_: runs.append(1))
    tokens = torch.randint(PIECES, (int(LENGTHS.sum()),))
    mix = torch.randn(len(LENGTHS), len(LENGTHS), dtype=torch.float64)
    torch.manual_seed(11)
    if count:
        parts = GradCache(encoder, tokens, LENGTHS, count, lambda part: 100 + part)
        with torch.set_grad_enabled(not cached):
            vectors = parts.vectors()
    else:
        vectors = encoder(tokens, LENGTHS)
    vectors = vectors.requires_grad_() if cached else vectors
    loss = ((vectors @ vectors.T) * mix).exp().sum().log()
    loss.backward()
    if cached:
        parts.backward(vectors.grad)
    gradients = {name: value.grad.clone() for name, value in encoder.named_parameters()}
    return loss.detach(), gradients, len(runs)


def assert_same(actual, expected, **tolerance):
    torch.testing.assert_close(actual[0], expected[0], **tolerance)
    assert actual[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        torch.testing.assert_close(actual[1][name], value, **tolerance, msg=name)


EXACT = {"rtol": 1e-9, "atol": 1e-12}


@pytest.mark.parametrize("count", [1, 2, 3, 10, 50])
def test_gradcache_without_dropout_equals_the_whole_batch_at_once(count):
    assert_same(step(0.0, count, cached=True), step(0.0), **EXACT)


@pytest.mark.parametrize("count", [2, 4])
def test_gradcache_with_dropout_equals_the_same_parts_in_one_graph(count):
    with_cache, expected = (step(0.3, count, cached) for cached in (True, False))
    assert_same(with_cache, expected, **EXACT)
    assert not torch.equal(with_cache[0], step(0.0, count, cached=True)[0])  # there is dropout


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_checkpointed_layers_give_the_same_bits_and_run_twice(dropout):
    one, two = step(dropout), step(dropout, checkpointed=True)
    assert_same(two, one, rtol=0, atol=0)
    assert (one[2], two[2]) == (1, 2)


def peak_memory(way):
    torch.set_num_threads(1)
    sizes = {"layers": 12, "width": 64, "heads": 2, "feed_forward": 512, "max_tokens": 32}
    encoder = Encoder(EncoderSettings(**sizes, dropout=0.1, attention_dropout=0.0), PIECES)
    lengths = torch.full((128,), 32)
    tokens = torch.zeros(int(lengths.sum()), dtype=torch.int64)
    encoder(tokens[:64], lengths[:2]).sum().backward()  # loads what a step needs
    before = peak()
    encoder.checkpoint_layers = way == "checkpoint"
    if way == "cache":
        parts = GradCache(encoder, tokens, lengths, 8, lambda part: part)
        with torch.no_grad():
            vectors = parts.vectors()
        (vectors.requires_grad_() ** 2).sum().backward()
        parts.backward(vectors.grad)
    else:
        (encoder(tokens, lengths) ** 2).sum().backward()
    return peak() - before


@pytest.mark.slow
def test_checkpointed_layers_and_gradcache_save_memory():
    peaks = {way: result(peak_memory, way) >> 20 for way in ("plain", "checkpoint", "cache")}
    assert peaks["plain"] > 100, peaks
    assert peaks["checkpoint"] < 0.7 * peaks["plain"], peaks  # the rest is mostly one layer's
    assert peaks["cache"] < 0.4 * peaks["plain"], peaks


def freed_memory(kept):
    if kept:
        keep_freed()
    block, process = torch.ones(50_000_000), psutil.Process()
    before = process.memory_info().rss
    del block
    return before - process.memory_info().rss


def test_freed_memory_is_kept_for_the_next_step():
    """200 MB, which the system takes back at once without `keep_freed`."""
    assert result(freed_memory, True) < 1e7 < 1.9e8 < result(freed_memory, False)


LARGE = {"model": {**MODEL, "width": 32768, "layers": 100, "feed_forward": 131072}}


def set_memory(monkeypatch, total):
    memory = psutil.virtual_memory()._replace(total=total)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)


def test_a_model_larger_than_the_memory_is_refused_before_anything_is_written(toy, tmp_path):
    words = r"^systems\.ems: training 1,2[\d,]* parameters needs .* GB of memory, .*; lower "
    with pytest.raises(EmsError, match=words + r"model\.width, .*, model\.feed_forward or vocab"):
        toy.train(tmp_path / "large", **LARGE)
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.parametrize(
    ("train", "copies"),
    [({}, 4), ({"amsgrad": True}, 5), ({"steps": 0}, 1)],
    ids=["Adam", "AMSGrad", "untrained"],
)
def test_training_must_fit_to_the_byte(toy, never_killed, monkeypatch, train, copies):
    """No random number is drawn for the count."""
    needed = 4 * copies * sum(value.numel() for value in weights_of(never_killed).values())
    settings = toy.experiment(train=train).systems["ems"]
    arguments = ("ems", settings, 3, 300, torch.device("cpu"))
    set_memory(monkeypatch, needed)
    before = torch.get_rng_state()
    check_fits(*arguments)
    assert torch.equal(torch.get_rng_state(), before)
    set_memory(monkeypatch, needed - 1)
    with pytest.raises(EmsError, match=r"systems\.ems: "):
        check_fits(*arguments)


def test_on_a_gpu_its_own_memory_counts(toy, monkeypatch):
    gpu, settings = SimpleNamespace(total_memory=1000), toy.experiment().systems["ems"]
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    with pytest.raises(EmsError, match="cuda has"):
        check_fits("ems", settings, 3, 300, torch.device("cuda"))
    gpu.total_memory = 10**9
    check_fits("ems", settings, 3, 300, torch.device("cuda"))


def test_a_step_mixes_no_devices_and_waits_for_no_gpu():
    """Except the systems whose sizes depend on values; made/fake_gpu.py notices them."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests"}
    command = [sys.executable, "tests/made/fake_gpu.py"]
    outcomes = json.loads(subprocess.check_output(command, cwd=ROOT, env=environment))
    assert "expected to be in the same device" in outcomes.pop("misplaced")
    check("gpu/waits.txt", "".join(f"{name}: {end}\n" for name, end in outcomes.items()))
