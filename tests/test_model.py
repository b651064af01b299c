"""Laws of the encoder: packed sentences equal each alone, dropout, sizes, Adam, vectors of text."""

import itertools
import json
import math
import random
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest
import torch
from made.models import SIZES as SMALL
from made.models import write_model
from made.references import encoder_states

from ems.base.files import sha256_file
from ems.config.model import EncoderSettings
from ems.model import encoder as module
from ems.model.devices import Adam, save_tensors
from ems.model.encode import SentenceEncoder
from ems.model.encoder import Encoder, add_dropped, drop, embed_tokens, keep_mask, shapes_of
from ems.model.packing import LEAST, SLACK, pack
from ems.text.subwords import UNK

PIECES, WIDTH, MOST = 23, 12, 15
STILL = {"dropout": 0.0, "attention_dropout": 0.0}
SIZES = {"layers": 2, "width": WIDTH, "heads": 3, "feed_forward": 20, "max_tokens": MOST}
MIXES = {  # lengths, and the groups that they make
    "one sentence": ([5], 1),
    "one token": ([1], 1),
    "all of one token": ([1] * 7, 1),
    "all at the limit": ([MOST] * 4, 1),
    "every length": (list(range(1, MOST + 1)), 1),
    "few of each length": (sorted([1, 2, 3, 7, 9, 15] * 23), 5),
    "one long after many short": ([1] * 40 + [MOST], 2),
    "a little too much padding for one group": ([1] * 40 + [12] * 32 + [14] * 3, 3),
    "groups of many sizes": (sorted((at * at) % MOST + 1 for at in range(150)), 5),
}


def make_encoder(**changes):
    """A float64 encoder in which no weight is at a neutral value (biases, norms)."""
    torch.manual_seed(0)
    encoder = Encoder(EncoderSettings(**{**SIZES, **STILL, **changes}), PIECES).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return encoder


def random_sentences(lengths):
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(PIECES, (length,), generator=generator) for length in lengths]


def encode(encoder, sentences):
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    return encoder(torch.cat(sentences), lengths)


@pytest.mark.parametrize("name", MIXES)
@pytest.mark.parametrize(("pooling", "width"), [("mean", WIDTH), ("mean-max", 2 * WIDTH)])
def test_packed_sentences_have_the_vectors_and_gradients_of_each_alone(name, pooling, width):
    sentences = random_sentences(MIXES[name][0])
    generator = torch.Generator().manual_seed(2)
    pull = torch.randn(len(sentences), width, dtype=torch.float64, generator=generator)
    packed, alone = make_encoder(pooling=pooling), make_encoder(pooling=pooling)
    vectors = encode(packed, sentences)
    expected = torch.cat([encode(alone, [sentence]) for sentence in sentences])
    torch.testing.assert_close(vectors, expected, rtol=0, atol=1e-11)
    for made in (vectors, expected):
        (made * pull).sum().backward()
    for (key, one), other in zip(packed.named_parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-9, msg=key)
        assert one.grad.abs().max() > 0, key


@pytest.mark.parametrize("activation", ["silu", "gelu"])
@pytest.mark.parametrize("positions", ["learned", "none"])
def test_the_settings_decide_activation_and_positions(activation, positions):
    encoder = make_encoder(activation=activation, positions=positions)
    weights = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    sentence = random_sentences([7])[0]
    expected = encoder_states(weights, sentence, SIZES["heads"], activation).mean(0)
    torch.testing.assert_close(encode(encoder, [sentence])[0], expected, rtol=0, atol=1e-9)
    turned = encode(encoder, [sentence.flip(0)])[0]
    assert torch.allclose(turned, expected, atol=1e-9) == (positions == "none")


@pytest.mark.parametrize("name", MIXES)
def test_groups_hold_every_token_once_in_order_and_little_padding(name):
    lengths, groups = MIXES[name]
    packing = pack(torch.tensor(lengths))
    assert len(packing.groups) == groups
    assert packing.sentence.tolist() == [n for n, size in enumerate(lengths) for _ in range(size)]
    assert packing.position.tolist() == [at for size in lengths for at in range(size)]
    held = torch.cat([group.index[group.real] for group in packing.groups])
    assert held.tolist() == list(range(sum(lengths)))
    for group in packing.groups:
        count, longest = group.index.shape
        assert count <= LEAST or count * longest <= SLACK * int(group.real.sum())
    assert all(len(group.index) >= LEAST for group in packing.groups[:-1])


@pytest.mark.parametrize("name", MIXES)
def test_a_moved_packing_is_the_same_and_the_encoder_uses_it(name):
    lengths = torch.tensor(MIXES[name][0])
    packing = pack(lengths)
    moved = packing.to(torch.device("cpu"))
    torch.testing.assert_close(
        *([p.position, p.sentence, *(vars(g) for g in p.groups)] for p in (moved, packing)),
        rtol=0,
        atol=0,
    )
    encoder, tokens = make_encoder(), torch.cat(random_sentences(lengths.tolist()))
    assert torch.equal(encoder(tokens, lengths, moved), encoder(tokens, lengths))
    moved.position.zero_()
    same = torch.equal(encoder(tokens, lengths, moved), encoder(tokens, lengths))
    assert same == (lengths.max() == 1)


@pytest.mark.parametrize(
    "changes", [{"dropout": 0.5, "layers": 0}, {"dropout": 0.5}, {"attention_dropout": 0.5}]
)
def test_dropout_acts_in_train_mode_only_and_follows_the_seed(changes):
    sentences = random_sentences([3, 8, 8])
    plain = encode(make_encoder(**{**changes, **STILL}), sentences)
    encoder = make_encoder(**changes)
    torch.manual_seed(3)
    first, second = encode(encoder, sentences), encode(encoder, sentences)
    torch.manual_seed(3)
    again = encode(encoder, sentences)
    assert (first - second).abs().max() > 1e-3
    assert (first - plain).abs().max() > 1e-3
    assert torch.equal(first, again)
    encoder.eval()
    assert torch.equal(encode(encoder, sentences), plain)


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout"])
def test_dropout_of_nearly_everything_leaves_the_residuals(kind):
    sentence = random_sentences([8])[0]
    encoder = make_encoder(layers=1, **{kind: 0.999999})
    encoder.dropout = 0.0  # the input is kept here
    (layer,) = encoder.layers
    x = encoder.input_norm(encoder.tokens(sentence) + encoder.positions.weight[:8])
    if kind == "dropout":  # attention and feed-forward give nothing
        x = layer.attention_norm(x)
    else:  # of attention, the bias of its output is left
        x = layer.attention_norm(x + layer.attention.output.bias)
        x = x + layer.outer(torch.nn.functional.silu(layer.inner(x)))
    expected = layer.output_norm(x).mean(0)
    torch.testing.assert_close(encode(encoder, [sentence])[0], expected, rtol=0, atol=1e-9)


def test_initial_weights_are_the_documented_ones():
    torch.manual_seed(0)
    sizes = {**SIZES, **STILL, "width": 60, "feed_forward": 90, "layers": 1}
    encoder = Encoder(EncoderSettings(**sizes), 2000)
    assert encoder.tokens.weight.std().item() == pytest.approx(0.02, rel=0.02)
    bound = math.sqrt(6 / (60 + 90))
    inner = encoder.layers[0].inner
    assert 0.98 * bound < inner.weight.abs().max().item() <= bound
    assert not inner.bias.any()


@pytest.mark.parametrize("share", [0.004, 0.1, 0.5, 0.9])
def test_a_mask_drops_its_share_and_has_mean_1(share):
    torch.manual_seed(1)
    mask = keep_mask(torch.empty(1000, 1001), share)
    error = 5 * (share * (1 - share) / mask.numel()) ** 0.5  # five standard deviations
    assert (mask == 0).double().mean().item() == pytest.approx(share, abs=error + 2**-17)
    assert mask.double().mean().item() == pytest.approx(1, abs=error / (1 - share))
    assert mask.unique().numel() == 2


def test_neighbours_are_dropped_independently():
    """Four elements share a random word."""
    torch.manual_seed(2)
    dropped = keep_mask(torch.empty(400_000), 0.3).view(-1, 4) == 0  # (words, 4)
    pairs = [dropped[:, [one, other]] for one, other in itertools.combinations(range(4), 2)]
    pairs.append(torch.stack([dropped[1:, 0], dropped[:-1, 3]], 1))  # of two words
    for both in pairs:
        assert both.all(1).double().mean().item() == pytest.approx(0.09, abs=0.005)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.25])
def test_the_gradient_has_the_same_mask_and_the_residual_is_kept(share):
    residual = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
    branch = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(5)
    dropped = drop(branch, share)
    torch.manual_seed(5)
    total = add_dropped(residual, branch, share)
    torch.testing.assert_close(total, residual + dropped)
    total.sum().backward()
    mask = (dropped / branch).detach()
    assert torch.equal(residual.grad, torch.ones(9, 5, dtype=torch.float64))
    torch.testing.assert_close(branch.grad, mask)


def test_weights_have_the_read_permissions_of_their_folder(tmp_path):
    for mode, expected in ((0o755, 0o644), (0o750, 0o640), (0o700, 0o600)):
        tmp_path.chmod(mode)
        save_tensors({"x": torch.zeros(2)}, tmp_path / "x.safetensors")
        assert stat.S_IMODE((tmp_path / "x.safetensors").stat().st_mode) == expected


LOADED = """
import sys, torch
from ems.model.devices import Adam
weight = torch.nn.Parameter(torch.ones(3))
first, second = Adam([weight], fused=True), Adam([weight])
scaler = torch.amp.GradScaler("cpu")
for optimizer in (first, second):
    optimizer.zero_grad()
    scaler.scale(weight.square().sum()).backward()
    scaler.unscale_(optimizer)
    optimizer.step()
second.load_state_dict(first.state_dict())
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("settings", [{}, {"fused": True}, {"amsgrad": True, "weight_decay": 0.1}])
def test_our_adam_has_the_steps_and_the_state_of_pytorch_s(settings):
    ours, theirs = (torch.nn.Linear(5, 3) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    pairs = [(ours, Adam), (theirs, torch.optim.Adam)]
    optimizers = [kind(layer.parameters(), lr=0.1, **settings) for layer, kind in pairs]
    for step in range(6):
        if step == 3:  # each continues from the state of the other one
            states = [optimizer.state_dict() for optimizer in optimizers]
            optimizers = [kind(layer.parameters(), **settings) for layer, kind in pairs]
            for optimizer, state in zip(optimizers, reversed(states), strict=True):
                optimizer.load_state_dict(state)
        inputs = torch.randn(7, 5)
        for (layer, _), optimizer in zip(pairs, optimizers, strict=True):
            optimizer.zero_grad()
            layer(inputs).square().sum().backward()
            optimizer.step()
        assert torch.equal(ours.weight, theirs.weight)
        assert torch.equal(ours.bias, theirs.bias)


def test_our_adam_does_not_load_the_compiler():
    assert subprocess.check_output([sys.executable, "-c", LOADED], text=True) == "False\n"


SEGMENTERS = {"en": "sacremoses", "zh": "jieba", "xx": "none"}


def made_up_lines(count):
    draw = random.Random(2)
    syllables = ["ka", "lo", "mi", "ne", "ru", "so", "ti", "va"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(60)]
    lines = [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(count)]
    return [f"{line.capitalize()}, {draw.choice(words)}!" for line in lines]


def describe(folder, **changes):
    whole = json.loads((folder / "model.json").read_text())
    files = {name: sha256_file(folder / name) for name in whole["sha256"]}
    whole |= {"segmenters": SEGMENTERS, "sha256": files, **changes}
    (folder / "model.json").write_text(json.dumps(whole))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "model"
    write_model(folder, list(SEGMENTERS), made_up_lines(400), pieces=200)
    describe(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(folder):
    return SentenceEncoder(folder)


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def test_encoding_many_lines_equals_encoding_each_alone(encoder, folder, monkeypatch):
    lines = made_up_lines(150)
    monkeypatch.setattr(module, "BATCH_TOKENS", 100)  # several batches
    together = encoder.encode(lines, "en")
    assert (together.dtype, together.shape) == (np.float32, (150, 16))
    for line, vector in zip(lines, together, strict=True):
        np.testing.assert_allclose(vector, encoder.encode([line], "en")[0], rtol=0, atol=1e-5)
    assert len({vector.round(3).tobytes() for vector in together}) > 100  # a mix-up would show
    assert SentenceEncoder(folder).encode(lines, "en").tobytes() == together.tobytes()
    assert encoder.encode([], "en").shape == (0, 16)


def test_an_encoder_in_train_mode_encodes_without_dropout():
    torch.manual_seed(0)
    model = Encoder(EncoderSettings(**SMALL), 50).train()
    sentences = [np.array([3, 1, 4]), np.array([1, 5])]
    first = embed_tokens(model, sentences)
    assert first.tobytes() == embed_tokens(model, sentences).tobytes()


@pytest.mark.parametrize("line", ["", "   ", "\u2028\ufeff"])
def test_a_line_without_text_gives_a_finite_vector_and_shifts_nothing(line, encoder):
    vectors = encoder.encode(["Kalo mi.", line, "Ne ru so."], "en")
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors[1]) > 0
    plain = encoder.encode(["Kalo mi.", "Ne ru so."], "en")
    np.testing.assert_allclose(vectors[[0, 2]], plain, rtol=0, atol=1e-5)
    assert encoder.tokenise([line], "en")[0].tolist() == [UNK]


def test_a_sentence_is_cut_at_max_tokens(encoder):
    limit = SMALL["max_tokens"]
    tokens = np.arange(10, 15 + limit)
    cut = [tokens[:limit], tokens, tokens[: limit - 1]]
    at_limit, over, under = embed_tokens(encoder.encoder, cut)
    np.testing.assert_allclose(over, at_limit, rtol=0, atol=1e-6)
    assert np.abs(over - under).max() > 1e-3


def test_each_language_uses_the_segmenter_that_the_model_folder_names(encoder, copy):
    line = "kalo(mi)ne"
    separate, whole = (encoder.tokenise([line], code)[0].tolist() for code in ("en", "xx"))
    assert separate != whole
    describe(copy, segmenters={**SEGMENTERS, "en": "none"})
    assert SentenceEncoder(copy).tokenise([line], "en")[0].tolist() == whole


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"layers": 0, "positions": "none"},
        {"layers": 0, "table": 8, "ngrams": 20},
        {"layers": 2, "table": 8, "pooling": "mean"},
        {"layers": 3, "pooling": "mean-max"},
    ],
)
def test_the_shapes_of_an_encoder_are_those_of_its_weights(sizes):
    settings = EncoderSettings(**SIZES | sizes)
    weights = Encoder(settings, 30).state_dict()
    assert shapes_of(settings, 30) == {name: tuple(value.shape) for name, value in weights.items()}
