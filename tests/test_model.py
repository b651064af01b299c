"""Laws of the encoder: packed sentences equal each sentence alone, dropout, the paper's size.

That a sentence alone is Eq. 1 is a law of test_objectives_exact.py.
"""

import math
import stat

import pytest
import torch
from made.encoder_reference import encoder_states
from made.objectives import system_settings

from ems.config.model import EncoderSettings
from ems.model.devices import save_tensors
from ems.model.encoder import Encoder, add_dropped, drop, keep_mask
from ems.model.objectives.system import System
from ems.model.packing import LEAST, SLACK, pack

PIECES, WIDTH, MAX_TOKENS = 23, 12, 15
STILL = {"dropout": 0.0, "attention_dropout": 0.0}
SIZES = {"layers": 2, "width": WIDTH, "heads": 3, "feed_forward": 20, "max_tokens": MAX_TOKENS}
MIXES = {  # lengths, and the groups that they make
    "one sentence": ([5], 1),
    "one token": ([1], 1),
    "all of one token": ([1] * 7, 1),
    "all at the limit": ([MAX_TOKENS] * 4, 1),
    "every length": (list(range(1, MAX_TOKENS + 1)), 1),
    "few of each length": (sorted([1, 2, 3, 7, 9, 15] * 23), 5),
    "one long after many short": ([1] * 40 + [MAX_TOKENS], 2),
    "a little too much padding for one group": ([1] * 40 + [12] * 32 + [14] * 3, 3),
    "groups of many sizes": (sorted((at * at) % MAX_TOKENS + 1 for at in range(150)), 5),
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
def test_packed_sentences_and_their_gradients_equal_each_sentence_alone(name, pooling, width):
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
def test_the_activation_and_the_positions_are_those_of_the_settings(activation, positions):
    encoder = make_encoder(activation=activation, positions=positions)
    weights = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    sentence = random_sentences([7])[0]
    change = "no position" if positions == "none" else None
    states = encoder_states(weights, sentence, SIZES["heads"], change, activation)
    expected = torch.stack(states).mean(0)
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
def test_a_packing_that_is_moved_is_the_same_and_one_given_is_used(name):
    lengths = torch.tensor(MIXES[name][0])
    packing = pack(lengths)
    moved = packing.to(torch.device("cpu"))
    parts = [[vars(group) for group in each.groups] for each in (packing, moved)]
    for one, other in zip(*parts, strict=True):
        for key, value in one.items():
            assert torch.equal(value, other[key])
            assert value.dtype == other[key].dtype
    for key in ("position", "sentence"):
        assert torch.equal(getattr(packing, key), getattr(moved, key))
    encoder, tokens = make_encoder(), torch.cat(random_sentences(lengths.tolist()))
    assert torch.equal(encoder(tokens, lengths, moved), encoder(tokens, lengths))
    moved.position.zero_()
    same = torch.equal(encoder(tokens, lengths, moved), encoder(tokens, lengths))
    assert same == (lengths.max() == 1)


@pytest.mark.parametrize(
    "changes",
    [{"dropout": 0.5, "layers": 0}, {"dropout": 0.5}, {"attention_dropout": 0.5}],
    ids=["input", "layers", "attention"],
)
def test_dropout_acts_in_train_mode_and_nowhere_else(changes):
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
def test_both_branches_of_a_layer_are_dropped_and_no_residual_is(kind):
    """Dropout of (nearly) everything leaves the residuals."""
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


def test_the_paper_s_sizes_have_the_parameters_of_its_equations():
    model = {"layers": 6, "width": 1024, "heads": 16, "feed_forward": 4096, "max_tokens": 120}
    contrastive = {"weight": 1, "width": 128, "temperature": 0.1}
    objectives = {"head": {"language_width": 128}, "xtr": {"weight": 1}, "contrastive": contrastive}
    with torch.device("meta"):
        system = System(system_settings(model, objectives), languages=62, pieces=60_000)
    width, inner, joined = 1024, 4096, 128 + 1024
    norm, attention = 2 * width, 4 * (width * width + width)  # query, key, value, output
    feed_forward = width * inner + inner + inner * width + width
    expected = {
        "encoder": 60_000 * width + 120 * width + norm + 6 * (attention + feed_forward + 2 * norm),
        "generative": 62 * 128 + joined * joined + joined + 60_000 * joined,  # W_emb has no bias
        "contrastive": 1024 * 1024 + 1024 + 1024 * 128 + 128,
    }
    assert expected["encoder"] == 137_142_272
    modules = {"encoder": system.encoder, **system.heads}
    assert expected == {k: sum(p.numel() for p in m.parameters()) for k, m in modules.items()}


def test_initial_weights_are_the_documented_ones():
    torch.manual_seed(0)
    sizes = {**SIZES, **STILL, "width": 60, "feed_forward": 90, "layers": 1}
    encoder = Encoder(EncoderSettings(**sizes), 2000)
    assert encoder.tokens.weight.std().item() == pytest.approx(0.02, rel=0.02)
    bound = math.sqrt(6 / (60 + 90))
    inner = encoder.layers[0].inner
    assert 0.98 * bound < inner.weight.abs().max().item() <= bound
    assert not inner.bias.any()


# --- dropout


@pytest.mark.parametrize("share", [0.004, 0.1, 0.5, 0.9])
def test_the_share_dropped_and_the_mean_are_those_asked_for(share):
    torch.manual_seed(1)
    mask = keep_mask(torch.empty(1000, 1001), share)
    error = 5 * (share * (1 - share) / mask.numel()) ** 0.5  # five standard deviations
    assert (mask == 0).double().mean().item() == pytest.approx(share, abs=error + 2**-17)
    assert mask.double().mean().item() == pytest.approx(1, abs=error / (1 - share))
    assert mask.unique().numel() == 2


def test_neighbours_are_dropped_independently():
    """Four elements share a random word: each pair of places in it, and the words, agree as often
    as chance has it.
    """
    torch.manual_seed(2)
    dropped = keep_mask(torch.empty(400_000), 0.3).view(-1, 4) == 0  # (words, 4)
    for first, second in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]:
        both = (dropped[:, first] & dropped[:, second]).double().mean().item()
        assert both == pytest.approx(0.09, abs=0.005)
    across = (dropped[1:, 0] & dropped[:-1, 3]).double().mean().item()
    assert across == pytest.approx(0.09, abs=0.005)


def test_a_mask_is_a_function_of_the_seed():
    def masks(seed):
        torch.manual_seed(seed)
        return keep_mask(torch.empty(50, 7), 0.5), keep_mask(torch.empty(50, 7), 0.5)

    first, second = masks(3)
    assert torch.equal(first, masks(3)[0])
    assert torch.equal(second, masks(3)[1])
    assert not torch.equal(first, second)
    assert not torch.equal(first, masks(4)[0])


@pytest.mark.parametrize("share", [0.0, 0.001, 0.25])
def test_the_gradient_is_that_of_the_same_mask_and_the_residual_is_kept(share):
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


def test_whoever_may_read_the_folder_may_read_the_weights_in_it(tmp_path):
    for mode, expected in ((0o755, 0o644), (0o750, 0o640), (0o700, 0o600)):
        tmp_path.chmod(mode)
        save_tensors({"x": torch.zeros(2)}, tmp_path / "x.safetensors")
        assert stat.S_IMODE((tmp_path / "x.safetensors").stat().st_mode) == expected
