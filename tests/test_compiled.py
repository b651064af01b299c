"""Compiled layers: the same function and gradients, in few shapes, for training only.

The compiler's last step (kernels) is left out, `aot_eager`: it needs a C++ compiler or a GPU.
"""

from copy import deepcopy

import pytest
import torch
from made.objectives import STILL
from made.shards import contents
from made.train import json_rows
from torch._dynamo.testing import CompileCounterWithBackend

from ems.config.model import EncoderSettings
from ems.model.encoder import ROWS, SHAPES, Encoder

SIZES = {"layers": 2, "width": 16, "heads": 2, "feed_forward": 24, "max_tokens": 20}
PIECES = 50


@pytest.fixture(autouse=True)
def _forgotten():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def encoders(**changes):
    torch.manual_seed(0)
    one = Encoder(EncoderSettings(**SIZES | STILL | changes), PIECES).double().train()
    return one, deepcopy(one)


def batch(sentences, seed=0):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 21, (sentences,), generator=generator).sort().values
    return torch.randint(PIECES, (int(lengths.sum()),), generator=generator), lengths


@pytest.mark.parametrize("sentences", [3, 90, 400])
def test_values_and_gradients_are_those_of_plain_layers(sentences):
    plain, compiled = encoders()
    compiled.compile_layers("aot_eager")
    pull = torch.randn(sentences, SIZES["width"], dtype=torch.float64)
    for encoder in (plain, compiled):
        (encoder(*batch(sentences)) * pull).sum().backward()
    with torch.no_grad():
        torch.testing.assert_close(compiled(*batch(sentences)), plain(*batch(sentences)))
    for (name, one), other in zip(compiled.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, msg=lambda text, name=name: name + text)


def test_all_layers_and_batches_of_about_a_size_share_one_graph():
    compiled, _ = encoders(layers=3)
    counter = CompileCounterWithBackend("aot_eager")
    compiled.compile_layers(counter)
    sizes = set()
    for seed in range(12):
        tokens, lengths = batch(280, seed)
        sizes.add(len(tokens))
        compiled(tokens, lengths).sum().backward()
    assert len(sizes) > 8
    assert 1 <= counter.frame_count <= 2  # about 2,940 tokens: 3,072 rows, or 2,560 or 3,584


def test_evaluation_is_not_compiled():
    compiled, plain = encoders()
    counter = CompileCounterWithBackend("aot_eager")
    compiled.compile_layers(counter)
    with torch.no_grad():
        assert torch.equal(compiled.eval()(*batch(9)), plain.eval()(*batch(9)))
    assert counter.frame_count == 0


@pytest.mark.parametrize(
    ("tokens", "expected"), [(1, ROWS), (513, 1024), (30_000, 30_720), (130_000, 131_072)]
)
def test_rows_come_in_multiples_of_a_power_of_two_near_a_sixteenth(tokens, expected):
    encoder, _ = encoders()
    assert encoder._rows(tokens) == tokens
    encoder.compile_layers("aot_eager")
    assert encoder._rows(tokens) == expected
    assert expected - tokens < max(ROWS, tokens / SHAPES)


@pytest.mark.slow
def test_a_compiled_training_learns_what_a_plain_one_does(toy, tmp_path, monkeypatch):
    compile_layers, calls = Encoder.compile_layers, []

    def without_kernels(encoder):
        calls.append(encoder)
        compile_layers(encoder, "aot_eager")

    monkeypatch.setattr(Encoder, "compile_layers", without_kernels)
    plain = toy.train(tmp_path / "plain", model=STILL)
    assert not calls
    compiled = toy.train(tmp_path / "compiled", model=STILL, train={"compile": True})
    assert len(calls) == 1
    assert contents(compiled) != contents(plain)  # the settings, at least, are saved with it
    losses = [json_rows(model / "losses.jsonl") for model in (plain, compiled)]
    for one, other in zip(*losses, strict=True):
        assert other["total"] == pytest.approx(one["total"], rel=1e-4)
