"""Laws of the memory savers: GradCache and checkpointed layers change no value and no gradient,
and they do save memory.
"""

import json
import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from conftest import ROOT

from ems.config.model import EncoderSettings
from ems.model.encoder import Encoder
from ems.train.memory import GradCache

PIECES = 30
SIZES = {"layers": 3, "width": 8, "heads": 2, "feed_forward": 12, "max_tokens": 9}
LENGTHS = torch.tensor([1, 1, 2, 3, 3, 4, 6, 7, 9, 9])


def made(dropout):
    """An encoder in train mode, its tokens, and a function that mixes all embeddings of a batch."""
    torch.manual_seed(4)
    settings = EncoderSettings(**SIZES, dropout=dropout, attention_dropout=dropout)
    encoder = Encoder(settings, PIECES).double().train()
    tokens = torch.randint(PIECES, (int(LENGTHS.sum()),))
    mix = torch.randn(len(LENGTHS), len(LENGTHS), dtype=torch.float64)
    return encoder, tokens, lambda vectors: ((vectors @ vectors.T) * mix).exp().sum().log()


def step(dropout, count=0, cached=False):
    """Loss and gradients of all sentences at once, or in parts: in one graph, or with GradCache."""
    encoder, tokens, loss_of = made(dropout)
    torch.manual_seed(11)
    if count:
        parts = GradCache(encoder, tokens, LENGTHS, count, lambda part: 100 + part)
        with torch.set_grad_enabled(not cached):
            vectors = parts.vectors()
    else:
        vectors = encoder(tokens, LENGTHS)
    loss = loss_of(vectors.requires_grad_() if cached else vectors)
    loss.backward()
    if cached:
        parts.backward(vectors.grad)
    gradients = {name: value.grad.clone() for name, value in encoder.named_parameters()}
    return loss.detach(), gradients


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
def test_gradcache_with_dropout_equals_the_plain_step_of_the_same_parts_and_seeds(count):
    with_cache, expected = (step(0.3, count, cached) for cached in (True, False))
    assert_same(with_cache, expected, **EXACT)
    assert not torch.equal(with_cache[0], step(0.0, count, cached=True)[0])  # there is dropout


def test_parts_are_all_sentences_once_in_order_with_about_equally_many_tokens():
    lengths = torch.arange(1, 81)
    seen = []

    def encode(tokens, sizes):
        seen.append((len(tokens), sizes.tolist()))
        return sizes[:, None].double()

    parts = GradCache(encode, torch.zeros(int(lengths.sum())), lengths, 4, lambda part: part)
    assert parts.vectors()[:, 0].tolist() == lengths.tolist()
    assert len(seen) == 4
    assert all(tokens == sum(sizes) for tokens, sizes in seen)
    assert max(tokens for tokens, _ in seen) < 1.1 * int(lengths.sum()) / 4


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_checkpointed_layers_give_the_same_bits_dropout_included(dropout, monkeypatch):
    expected = step(dropout)
    counted = []

    class Counting(Encoder):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.checkpoint_layers = True
            self.layers[0].register_forward_pre_hook(lambda *_: counted.append(1))

    monkeypatch.setitem(globals(), "Encoder", Counting)
    assert_same(step(dropout), expected, rtol=0, atol=0)
    assert len(counted) == 2  # each layer ran twice: once for its value, once for its gradient


# --- memory


def peak_of(way):
    """Peak resident memory (MB) above that of the start, of one step of an encoder."""
    torch.set_num_threads(1)
    sizes = {"layers": 12, "width": 64, "heads": 2, "feed_forward": 512, "max_tokens": 32}
    encoder = Encoder(EncoderSettings(**sizes, dropout=0.1, attention_dropout=0.0), PIECES)
    lengths = torch.full((128,), 32)
    tokens = torch.zeros(int(lengths.sum()), dtype=torch.int64)
    warm_up = partial(encoder, tokens[:64], lengths[:2])
    warm_up().sum().backward()
    before = _high_water()
    encoder.checkpoint_layers = way == "checkpoint"
    if way == "cache":
        parts = GradCache(encoder, tokens, lengths, 8, lambda part: part)
        with torch.no_grad():
            vectors = parts.vectors()
        (vectors.requires_grad_() ** 2).sum().backward()
        parts.backward(vectors.grad)
    else:
        (encoder(tokens, lengths) ** 2).sum().backward()
    return (_high_water() - before) / 1024


def _high_water():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1])  # KiB


def test_both_ways_take_much_less_memory():
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    peaks = {}
    for way in ("plain", "checkpoint", "cache"):
        command = f"import test_memory, json; print(json.dumps(test_memory.peak_of({way!r})))"
        output = subprocess.check_output([sys.executable, "-c", command], env=environment)
        peaks[way] = json.loads(output)
    assert peaks["plain"] > 100, peaks  # what there is to save
    assert peaks["checkpoint"] < 0.7 * peaks["plain"], peaks  # what is left is mostly of one layer
    assert peaks["cache"] < 0.4 * peaks["plain"], peaks


FREED = """
import psutil, torch, sys
from ems.train.memory import keep_freed
if sys.argv[1] == "kept":
    keep_freed()
block = torch.ones(50_000_000)
before = psutil.Process().memory_info().rss
del block
print(before - psutil.Process().memory_info().rss)
"""


def test_what_a_training_frees_is_kept_for_its_next_step():
    """200 MB, which the system has back at once without the settings."""
    freed = {
        name: int(subprocess.check_output([sys.executable, "-c", FREED, name], cwd=ROOT))
        for name in ("kept", "given back")
    }
    assert freed["kept"] < 1e7 < 1.9e8 < freed["given back"]
