"""Laws of the encoder: packed equals padded, a sentence stands alone, the paper's size (Eq. 1)."""

import math

import pytest
import torch
from objectives_made import system_settings

from ems.model.encoder import Encoder, EncoderSettings
from ems.model.packing import LEAST, SLACK, pack, pad, unpad
from ems.objectives.system import System

PIECES, WIDTH, HEADS, MAX_TOKENS = 23, 12, 3, 15
MIXES = {
    "one sentence": [5],
    "one token": [1],
    "all of one token": [1] * 7,
    "all at the limit": [MAX_TOKENS] * 4,
    "every length": list(range(1, MAX_TOKENS + 1)),
    "few of each length, several groups": sorted([1, 2, 3, 7, 9, 15] * 23),
    "one long sentence after many short ones": [1] * 40 + [MAX_TOKENS],
    "a little too much padding for one group": [1] * 40 + [12] * 32 + [14] * 3,
    "groups of many sizes": sorted((at * at) % MAX_TOKENS + 1 for at in range(150)),
}


def settings(**changes):
    sizes = {
        "layers": 2,
        "width": WIDTH,
        "heads": HEADS,
        "feed_forward": 20,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "max_tokens": MAX_TOKENS,
    }
    return EncoderSettings(**{**sizes, **changes})


def make_encoder(**changes):
    """A float64 encoder in which no weight is at a neutral value (biases, norms)."""
    torch.manual_seed(0)
    encoder = Encoder(settings(**changes), PIECES).double()
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


# --- an independent reference: padded, from elementary operations


def reference_norm(x, weights, name):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    normal = (x - mean) / torch.sqrt(variance + 1e-5)
    return normal * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def reference_linear(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def reference_attention(x, real, weights, name):
    width = x.shape[2]
    size = width // HEADS
    query, key, value = reference_linear(x, weights, f"{name}.input").split(width, dim=2)
    outputs = []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = query[:, :, part] @ key[:, :, part].transpose(1, 2) / math.sqrt(size)
        shares = scores.exp() * real[:, None, :]  # no weight for padding
        outputs.append(shares / shares.sum(2, keepdim=True) @ value[:, :, part])
    return reference_linear(torch.cat(outputs, 2), weights, f"{name}.output")


def reference(sentences, weights, layers):
    """Embeddings [N, d] of all sentences padded to the longest one."""
    longest = max(map(len, sentences))
    padded = torch.zeros(len(sentences), longest, dtype=torch.long)
    real = torch.zeros(len(sentences), longest, dtype=torch.float64)
    for row, sentence in enumerate(sentences):
        padded[row, : len(sentence)] = sentence
        real[row, : len(sentence)] = 1
    x = weights["tokens.weight"][padded] + weights["positions.weight"][:longest]
    x = reference_norm(x, weights, "input_norm")
    for at in range(layers):
        layer = f"layers.{at}"
        mixed = reference_attention(x, real, weights, f"{layer}.attention")
        x = reference_norm(x + mixed, weights, f"{layer}.attention_norm")
        inner = reference_linear(x, weights, f"{layer}.inner")
        inner = inner / (1 + torch.exp(-inner))  # swish
        outer = reference_linear(inner, weights, f"{layer}.outer")
        x = reference_norm(x + outer, weights, f"{layer}.output_norm")
    return (x * real[:, :, None]).sum(1) / real.sum(1, keepdim=True)


# --- packed equals padded


@pytest.mark.parametrize("name", MIXES)
def test_packed_equals_padded(name):
    encoder, sentences = make_encoder(), random_sentences(MIXES[name])
    expected = reference(sentences, encoder.state_dict(), layers=2)
    torch.testing.assert_close(encode(encoder, sentences), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", MIXES)
def test_gradients_of_packed_equal_those_of_padded(name):
    encoder, sentences = make_encoder(), random_sentences(MIXES[name])
    generator = torch.Generator().manual_seed(2)
    pull = torch.randn(len(sentences), WIDTH, dtype=torch.float64, generator=generator)
    (encode(encoder, sentences) * pull).sum().backward()
    weights = {key: value.clone().requires_grad_() for key, value in encoder.state_dict().items()}
    (reference(sentences, weights, layers=2) * pull).sum().backward()
    for key, parameter in encoder.named_parameters():
        torch.testing.assert_close(parameter.grad, weights[key].grad, rtol=0, atol=1e-9, msg=key)
        assert parameter.grad.abs().max() > 0, key


def test_the_length_mixes_give_one_group_and_several():
    counts = {name: len(pack(torch.tensor(lengths)).groups) for name, lengths in MIXES.items()}
    assert counts["one sentence"] == counts["every length"] == 1
    assert counts["few of each length, several groups"] > 2
    assert counts["one long sentence after many short ones"] == 2
    assert counts["a little too much padding for one group"] == 3
    assert counts["groups of many sizes"] > 2


@pytest.mark.parametrize("name", MIXES)
def test_groups_hold_every_token_once_in_order_and_little_padding(name):
    packing = pack(torch.tensor(MIXES[name]))
    held = torch.cat([group.index[group.real] for group in packing.groups])
    assert held.tolist() == list(range(sum(MIXES[name])))
    for group in packing.groups:
        count, longest = group.index.shape
        assert count <= LEAST or count * longest <= SLACK * int(group.real.sum())
    for group in packing.groups[:-1]:
        assert len(group.index) >= LEAST


@pytest.mark.parametrize("name", MIXES)
def test_each_token_knows_its_sentence_and_its_position(name):
    packing = pack(torch.tensor(MIXES[name]))
    lengths = MIXES[name]
    assert packing.sentence.tolist() == [n for n, size in enumerate(lengths) for _ in range(size)]
    assert packing.position.tolist() == [at for size in lengths for at in range(size)]


@pytest.mark.parametrize("name", MIXES)
def test_a_packing_that_is_moved_is_the_same_and_one_given_is_used(name):
    lengths = torch.tensor(MIXES[name])
    packing = pack(lengths)
    moved = packing.to(torch.device("cpu"))
    for one, other in zip(packing.groups, moved.groups, strict=True):
        for key, value in vars(one).items():
            assert torch.equal(value, vars(other)[key])
            assert value.dtype == vars(other)[key].dtype
    for key in ("position", "sentence", "lengths"):
        assert torch.equal(getattr(packing, key), getattr(moved, key))
    encoder, tokens = make_encoder(), torch.cat(random_sentences(MIXES[name]))
    assert torch.equal(encoder(tokens, lengths, moved), encoder(tokens, lengths))
    moved.position.zero_()
    if max(MIXES[name]) > 1:
        assert not torch.equal(encoder(tokens, lengths, moved), encoder(tokens, lengths))


# --- padding and back

SEVERAL = [name for name in MIXES if "groups" in name or "many short" in name or "too much" in name]


def plainly_padded(packed, packing):
    """Plain indexing, whose gradient autograd makes."""
    return tuple(packed[group.index.flatten()] for group in packing.groups)


def plainly_unpadded(padded, packing):
    """Row by row, sentence by sentence."""
    rows = []
    for group, part in zip(packing.groups, padded, strict=True):
        longest = group.index.shape[1]
        for at, size in enumerate(group.real.sum(1).tolist()):
            rows += [part[at * longest + column] for column in range(size)]
    return torch.stack(rows)


def through(packed, packing, pad, unpad):
    """Padded, mixed within each sentence so that padding has no part in it, and packed again."""
    parts = []
    for group, rows in zip(packing.groups, pad(packed, packing), strict=True):
        count, longest = group.index.shape
        real = rows.view(count, longest, -1) * group.real[:, :, None]  # (n, L, k)
        mixed = real.cumsum(1) * real.sum(1, keepdim=True).tanh()  # (n, L, k)
        parts.append(mixed.reshape(count * longest, -1))  # (n * L, k)
    return unpad(parts, packing)


@pytest.mark.parametrize("name", MIXES)
def test_padded_and_back_is_what_it_was(name):
    packing = pack(torch.tensor(MIXES[name]))
    packed = torch.randn(sum(MIXES[name]), 3, dtype=torch.float64)
    padded = pad(packed, packing)
    for found, expected in zip(padded, plainly_padded(packed, packing), strict=True):
        assert torch.equal(found, expected)
    assert torch.equal(unpad(list(padded), packing), packed)
    assert torch.equal(unpad(list(padded), packing), plainly_unpadded(padded, packing))


@pytest.mark.parametrize("name", MIXES)
def test_gradients_of_padding_and_back_equal_those_of_plain_indexing(name):
    packing = pack(torch.tensor(MIXES[name]))
    torch.manual_seed(4)
    packed = torch.randn(sum(MIXES[name]), 3, dtype=torch.float64)
    pull = torch.randn_like(packed)
    gradients = []
    for pair in ((pad, unpad), (plainly_padded, plainly_unpadded)):
        leaf = packed.clone().requires_grad_()
        (through(leaf, packing, *pair) * pull).sum().backward()
        gradients.append(leaf.grad)
    assert gradients[0].abs().min() > 0
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def test_gradients_of_padding_and_back_equal_finite_differences_in_several_groups():
    packing = pack(torch.tensor([1] * 32 + [4, 5]))
    assert len(packing.groups) == 2
    packed = torch.randn(41, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: through(x, packing, pad, unpad), packed)


@pytest.mark.parametrize("name", SEVERAL)
def test_no_gradient_flows_into_padding(name):
    packing = pack(torch.tensor(MIXES[name]))
    assert len(packing.groups) > 1
    sizes = [group.index.numel() for group in packing.groups]
    padded = [torch.randn(size, 3, dtype=torch.float64, requires_grad=True) for size in sizes]
    pull = torch.randn(sum(MIXES[name]), 3, dtype=torch.float64)
    (unpad(padded, packing) * pull).sum().backward()
    found = torch.cat(
        [p.grad[g.real.flatten()] for p, g in zip(padded, packing.groups, strict=True)]
    )
    assert torch.equal(found, pull)
    for part, group in zip(padded, packing.groups, strict=True):
        assert not part.grad[~group.real.flatten()].any()


# --- Eq. 1


def test_the_embedding_is_the_mean_over_the_true_tokens():
    """Without layers, the state of a token is the norm of token plus position: plain loops."""
    encoder = make_encoder(layers=0)
    sentences = random_sentences([1, 2, 5, MAX_TOKENS])
    tokens = encoder.tokens.weight.tolist()
    positions = encoder.positions.weight.tolist()
    gain, bias = encoder.input_norm.weight.tolist(), encoder.input_norm.bias.tolist()
    for found, sentence in zip(encode(encoder, sentences).tolist(), sentences, strict=True):
        mean = [0.0] * WIDTH
        for at, token in enumerate(sentence.tolist()):
            state = [tokens[token][k] + positions[at][k] for k in range(WIDTH)]
            centre = sum(state) / WIDTH
            spread = math.sqrt(sum((value - centre) ** 2 for value in state) / WIDTH + 1e-5)
            for k in range(WIDTH):
                mean[k] += ((state[k] - centre) / spread * gain[k] + bias[k]) / len(sentence)
        assert found == pytest.approx(mean, abs=1e-12)


def test_an_embedding_does_not_depend_on_its_neighbours_in_the_batch():
    encoder = make_encoder().eval()
    sentences = random_sentences(MIXES["groups of many sizes"])
    together = encode(encoder, sentences)
    for at in range(0, len(sentences), 7):
        alone = encode(encoder, [sentences[at]])
        torch.testing.assert_close(together[at : at + 1], alone, rtol=0, atol=1e-12)


def test_an_embedding_depends_on_each_token_and_on_their_order():
    encoder = make_encoder()
    sentence = torch.arange(6)
    first = encode(encoder, [sentence])
    for at in range(6):
        changed = sentence.clone()
        changed[at] = 20
        assert (encode(encoder, [changed]) - first).abs().max() > 1e-3
    assert (encode(encoder, [sentence.flip(0)]) - first).abs().max() > 1e-3


# --- dropout


@pytest.mark.parametrize(
    "changes",
    [{"dropout": 0.5, "layers": 0}, {"dropout": 0.5}, {"attention_dropout": 0.5}],
    ids=["input", "layers", "attention"],
)
def test_dropout_acts_in_train_mode_and_nowhere_else(changes):
    sentences = random_sentences([3, 8, 8])
    plain = encode(make_encoder(**{**changes, "dropout": 0.0, "attention_dropout": 0.0}), sentences)
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
def test_both_branches_of_a_layer_are_dropped_and_no_residual_is(kind):
    """Dropout of (nearly) everything leaves the residuals, which the reference adds nothing to."""
    sentence = random_sentences([8])[0]
    encoder = make_encoder(layers=1, **{kind: 0.999999})
    encoder.dropout = 0.0  # the input is kept here
    weights = encoder.state_dict()
    x = encoder.tokens.weight[sentence] + encoder.positions.weight[:8]
    x = reference_norm(x, weights, "input_norm")
    if kind == "dropout":  # attention and feed-forward give nothing
        x = reference_norm(x, weights, "layers.0.attention_norm")
    else:  # nothing is attended to: of attention, the bias of its output is left
        x = reference_norm(
            x + weights["layers.0.attention.output.bias"], weights, "layers.0.attention_norm"
        )
        inner = reference_linear(x, weights, "layers.0.inner")
        x = x + reference_linear(inner / (1 + torch.exp(-inner)), weights, "layers.0.outer")
    expected = reference_norm(x, weights, "layers.0.output_norm").mean(0)
    torch.testing.assert_close(encode(encoder, [sentence])[0], expected, rtol=0, atol=1e-9)


# --- sizes


def paper_system():
    """A system of the paper's size on the meta device: shapes without memory."""
    model = {
        "layers": 6,
        "width": 1024,
        "heads": 16,
        "feed_forward": 4096,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "max_tokens": 120,
    }
    objectives = {
        "head": {"language_width": 128},
        "xtr": {"weight": 1},
        "contrastive": {"weight": 1, "width": 128, "temperature": 0.1},
    }
    with torch.device("meta"):
        return System(system_settings(model, objectives), languages=62, pieces=60_000)


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_encoder_of_the_papers_size_has_137_142_272_parameters():
    width, inner = 1024, 4096
    norm = 2 * width
    attention = 4 * (width * width + width)  # query, key, value, output
    feed_forward = width * inner + inner + inner * width + width
    layer = attention + norm + feed_forward + norm
    expected = 60_000 * width + 120 * width + norm + 6 * layer
    assert expected == 137_142_272
    assert count(paper_system().encoder) == expected


def test_the_heads_of_the_papers_size_have_the_parameters_of_eqs_2_to_11():
    heads = paper_system().heads
    joined = 128 + 1024
    xtr = 62 * 128 + joined * joined + joined + 60_000 * joined  # W_emb has no bias
    contrastive = 1024 * 1024 + 1024 + 1024 * 128 + 128
    assert count(heads["generative"]) == xtr
    assert count(heads["contrastive"]) == contrastive


def test_initial_weights_are_the_documented_ones():
    torch.manual_seed(0)
    encoder = Encoder(settings(width=60, feed_forward=90, layers=1), 2000)
    assert encoder.tokens.weight.std().item() == pytest.approx(0.02, rel=0.02)
    bound = math.sqrt(6 / (60 + 90))
    inner = encoder.layers[0].inner
    assert 0.98 * bound < inner.weight.abs().max().item() <= bound
    assert not inner.bias.any()
