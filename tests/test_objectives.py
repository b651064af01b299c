"""Laws of the objectives: fused XTR equals the dense KL of Eq. 6-7, contrastive equals Eq. 8-11.

The references are loops over pairs and tokens in plain Python floats (float64).
"""

import json
import math

import numpy as np
import pytest
import torch
from objectives_made import system_settings

from ems.model.encoder import EncoderSettings
from ems.model.heads import ContrastiveHead, GenerativeHead, HeadSettings
from ems.objectives import fused
from ems.objectives.batch import DeviceBatch
from ems.objectives.contrastive import in_batch_loss
from ems.objectives.fused import entropy, kl_loss
from ems.objectives.system import System
from ems.objectives.xtr import xtr_target
from ems.shards.reader import Batch, PairStore

PIECES, WIDTH, LANGUAGE_WIDTH = 11, 6, 4
TARGETS = [[3, 3, 5], [7], [1, 2, 1, 1, 4], [10, 10], [0, 9, 8, 7, 6, 5]]  # with repeated tokens


# --- references: lists of floats


def dot(first, second):
    return sum(a * b for a, b in zip(first, second, strict=True))


def linear(weight, bias, x):
    return [dot(row, x) + shift for row, shift in zip(weight, bias, strict=True)]


def kl_of_target(logits, target):
    """KL(p || softmax(logits)) with p(w) = N_w / |S| (Eq. 7), over the whole vocabulary."""
    normaliser = sum(math.exp(value) for value in logits)
    total = 0.0
    for word, value in enumerate(logits):
        p = target.count(word) / len(target)
        if p > 0:
            total += p * (math.log(p) - math.log(math.exp(value) / normaliser))
    return total


def xtr_logits(u, language, head):
    """The logits of Eq. 2-5: language first, L_fc with bias, swish, L_emb without bias."""
    joined = [*head["languages.weight"][language], *u]
    mixed = linear(head["mix.weight"], head["mix.bias"], joined)
    swish = [value / (1 + math.exp(-value)) for value in mixed]
    return [dot(row, swish) for row in head["output.weight"]]


def contrastive_projection(u, head):
    """h of Eq. 10-11."""
    inner = linear(head["inner.weight"], head["inner.bias"], u)
    return linear(head["outer.weight"], head["outer.bias"], [max(0.0, value) for value in inner])


def cosine(first, second):
    return dot(first, second) / math.sqrt(dot(first, first) * dot(second, second))


def contrastive_sum(first, second, temperature):
    """Eq. 8: a sum over the pairs j, negatives among the second sides and among the first."""
    total = 0.0
    for j in range(len(first)):
        true = math.exp(cosine(first[j], second[j]) / temperature)
        forward, backward = 0.0, 0.0
        for k in range(len(first)):
            forward += math.exp(cosine(first[j], second[k]) / temperature)
            backward += math.exp(cosine(first[k], second[j]) / temperature)
        total -= math.log(true / forward) + math.log(true / backward)
    return total


def weights_of(module):
    """The state of a module as nested lists, every value moved away from its start value."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in module.double().parameters():
            noise = torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
            parameter.add_(0.4 * noise)
    return {key: value.tolist() for key, value in module.state_dict().items()}


def normal(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


# --- XTR


def xtr_loss(states, output, row, token, lengths):
    return kl_loss(states, output, xtr_target(row, token, lengths, states.dtype))


def xtr_problem():
    """States, output matrix, TARGETS as (row, token, lengths); tokens of rows interleaved."""
    pairs = [(row, token) for row, target in enumerate(TARGETS) for token in target]
    pairs = pairs[::2] + pairs[1::2]
    row, token = (torch.tensor(part) for part in zip(*pairs, strict=True))
    lengths = torch.tensor([len(target) for target in TARGETS])
    return normal(0, len(TARGETS), WIDTH), normal(1, PIECES, WIDTH), row, token, lengths


def dense_kl(states, output):
    """The same sum with a dense target and a dense softmax, for autograd."""
    target = torch.zeros(len(TARGETS), PIECES, dtype=torch.float64)
    for at, tokens in enumerate(TARGETS):
        for token in tokens:
            target[at, token] += 1 / len(tokens)
    exponents = (states @ output.T).exp()
    share = exponents / exponents.sum(1, keepdim=True)
    return (torch.special.xlogy(target, target) - target * share.log()).sum()


def test_xtr_equals_the_kl_of_equations_6_and_7_by_loops():
    states, output, row, token, lengths = xtr_problem()
    expected = 0.0
    for state, target in zip(states.tolist(), TARGETS, strict=True):
        expected += kl_of_target([dot(piece, state) for piece in output.tolist()], target)
    found = xtr_loss(states, output, row, token, lengths).item()
    assert found == pytest.approx(expected, rel=1e-6)


def test_gradients_of_fused_xtr_equal_those_of_the_dense_kl():
    states, output, row, token, lengths = xtr_problem()
    fused = [states.clone().requires_grad_(), output.clone().requires_grad_()]
    dense = [states.clone().requires_grad_(), output.clone().requires_grad_()]
    (2.5 * xtr_loss(*fused, row, token, lengths)).backward()
    (2.5 * dense_kl(*dense)).backward()
    for mine, theirs in zip(fused, dense, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-10, atol=1e-12)


def test_gradients_of_fused_xtr_equal_finite_differences():
    states, output, row, token, lengths = xtr_problem()
    states.requires_grad_()
    output.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s, o: xtr_loss(s, o, row, token, lengths), (states, output), atol=1e-7
    )


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_xtr_in_chunks_equals_xtr_at_once(rows, monkeypatch):
    def run():
        states, output, row, token, lengths = xtr_problem()
        states.requires_grad_()
        output.requires_grad_()
        loss = xtr_loss(states, output, row, token, lengths)
        loss.backward()
        return loss.detach(), states.grad, output.grad

    whole = run()
    monkeypatch.setattr(fused, "CHUNK", rows * PIECES)
    for part, expected in zip(run(), whole, strict=True):
        torch.testing.assert_close(part, expected, rtol=1e-12, atol=1e-12)


def test_without_gradients_no_gradient_is_made(monkeypatch):
    """Validation computes one product with the output matrix, not three."""
    states, output, row, token, lengths = xtr_problem()
    output.requires_grad_()
    expected = xtr_loss(states, output, row, token, lengths).item()
    made = pytest.fail
    monkeypatch.setattr(torch, "empty", lambda *_, **__: made("a gradient buffer was made"))
    with torch.no_grad():
        assert xtr_loss(states, output, row, token, lengths).item() == expected


def test_a_chunk_never_holds_more_logits_than_its_limit(monkeypatch):
    sizes = []
    softmax = torch.softmax

    def spy(logits, dim, out):
        sizes.append(logits.numel())
        return softmax(logits, dim=dim, out=out)

    monkeypatch.setattr(torch, "softmax", spy)
    monkeypatch.setattr(fused, "CHUNK", 2 * PIECES)
    xtr_loss(*xtr_problem())
    assert sizes == [2 * PIECES, 2 * PIECES, PIECES]


def test_xtr_is_zero_when_the_prediction_is_the_target():
    """The entropy of the target is part of the KL: at q = p nothing is left."""
    target = [2, 2, 0, 1]
    share = torch.full((1, 3), 0.0, dtype=torch.float64)
    for token in target:
        share[0, token] += 1 / len(target)
    output = torch.eye(3, dtype=torch.float64)  # logits are the states
    row, lengths = torch.zeros(4, dtype=torch.long), torch.tensor([4])
    loss = xtr_loss(share.log() + 3, output, row, torch.tensor(target), lengths)
    assert loss.item() == pytest.approx(0, abs=1e-6)
    away = xtr_loss(share.log() * 0.5, output, row, torch.tensor(target), lengths)
    assert away.item() > 0.01


def test_the_entropy_counts_repeated_tokens_and_keeps_rows_apart():
    _, _, row, token, lengths = xtr_problem()
    expected = 0.0
    for target in TARGETS:
        for word in set(target):
            p = target.count(word) / len(target)
            expected -= p * math.log(p)
    target = xtr_target(row, token, lengths, torch.float64)
    assert entropy(target, PIECES).item() == pytest.approx(expected, rel=1e-12)


MODEL = {
    "layers": 0,
    "width": WIDTH,
    "heads": 1,
    "feed_forward": 1,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "max_tokens": 6,
}


def test_the_generative_head_puts_the_language_first_and_has_no_output_bias():
    head = GenerativeHead(
        EncoderSettings(**MODEL), HeadSettings(language_width=LANGUAGE_WIDTH), 3, PIECES
    )
    weights = weights_of(head)
    assert set(weights) == {"languages.weight", "mix.weight", "mix.bias", "output.weight"}
    u, languages = normal(2, 4, WIDTH), torch.tensor([2, 0, 1, 2])
    logits = head(u, languages) @ head.output.weight.T
    for found, vector, language in zip(logits, u.tolist(), languages.tolist(), strict=True):
        assert found.tolist() == pytest.approx(xtr_logits(vector, language, weights), rel=1e-10)


# --- contrastive


def test_the_contrastive_head_equals_equations_10_and_11():
    head = ContrastiveHead(EncoderSettings(**MODEL), 3)
    weights = weights_of(head)
    u = normal(3, 5, WIDTH)
    for found, vector in zip(head(u), u.tolist(), strict=True):
        assert found.tolist() == pytest.approx(contrastive_projection(vector, weights), rel=1e-10)


@pytest.mark.parametrize("temperature", [0.1, 0.7])
def test_the_contrastive_loss_equals_equations_8_and_9_by_loops(temperature):
    first, second = normal(4, 5, 3), 2 * normal(6, 5, 3)  # not of length 1: cosine must see to it
    expected = contrastive_sum(first.tolist(), second.tolist(), temperature)
    found = in_batch_loss(torch.cat([first, second]), temperature).item()
    assert found == pytest.approx(expected, rel=1e-10)


def test_gradients_of_the_contrastive_loss_equal_finite_differences():
    first, second = normal(4, 4, 3).requires_grad_(), normal(6, 4, 3).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda a, b: in_batch_loss(torch.cat([a, b]), 0.5), (first, second)
    )


# --- a whole batch, from tokens

LANGUAGES = ["en", "de", "fr", "zh"]
MAX_TOKENS = 6
PAIRS = {  # first side, second side; one sentence is longer than MAX_TOKENS
    ("de", "en"): [([1, 2, 2, 3], [4, 5]), ([6], [7, 8, 9, 7, 7, 1, 2, 3]), ([2, 5, 5], [10])],
    ("en", "fr"): [([3, 3, 1], [0, 2, 4, 6, 8]), ([9, 4], [1, 1, 3])],
    ("en", "zh"): [([8, 8, 8, 2, 1], [5, 6, 5])],
}


def write_shard(folder, languages, pairs):
    """A shard by hand, as its format says: ids, offsets, manifest."""
    folder.mkdir(parents=True)
    for side, code in enumerate(languages):
        sentences = [pair[side] for pair in pairs]
        ends = np.cumsum([0, *map(len, sentences)])
        np.concatenate(sentences).astype(np.uint16).tofile(folder / f"{code}.ids")
        ends.astype(np.int64).tofile(folder / f"{code}.offsets")
    np.arange(1, len(pairs) + 1).tofile(folder / "lines")
    manifest = {
        "languages": list(languages),
        "pairs": len(pairs),
        "tokens": {c: sum(len(p[s]) for p in pairs) for s, c in enumerate(languages)},
        "vocabulary_sha256": "v",
        "sha256": {},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def store(tmp_path):
    folders = [
        write_shard(tmp_path / "-".join(languages), languages, pairs)
        for languages, pairs in PAIRS.items()
    ]
    return PairStore(folders, LANGUAGES, MAX_TOKENS)


def all_pairs():
    """(language, tokens, language, tokens) of every pair, sentences cut to MAX_TOKENS."""
    return [
        (languages[0], first[:MAX_TOKENS], languages[1], second[:MAX_TOKENS])
        for languages, pairs in PAIRS.items()
        for first, second in pairs
    ]


def make_system(xtr_weight=1.0, contrastive_weight=1.0):
    """A system without layers, so that its sentence embeddings are short loops too."""
    objectives = {
        "head": {"language_width": LANGUAGE_WIDTH},
        "xtr": {"weight": xtr_weight},
        "contrastive": {"weight": contrastive_weight, "width": 3, "temperature": 0.3},
    }
    torch.manual_seed(7)
    return System(system_settings(MODEL, objectives), len(LANGUAGES), PIECES)


def embedding(tokens, weights):
    """Mean over tokens of norm(token + position) (Eq. 1 without layers)."""
    mean = [0.0] * WIDTH
    for at, token in enumerate(tokens):
        state = [
            weights["encoder.tokens.weight"][token][k] + weights["encoder.positions.weight"][at][k]
            for k in range(WIDTH)
        ]
        centre = sum(state) / WIDTH
        spread = math.sqrt(sum((value - centre) ** 2 for value in state) / WIDTH + 1e-5)
        for k in range(WIDTH):
            gain = weights["encoder.input_norm.weight"][k]
            shift = weights["encoder.input_norm.bias"][k]
            mean[k] += ((state[k] - centre) / spread * gain + shift) / len(tokens)
    return mean


def part_of(weights, name):
    prefix = f"heads.{name}."
    return {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}


def expected_parts(pairs, weights):
    """Both parts of Eq. 12 for a list of pairs, by loops."""
    head, projection = part_of(weights, "generative"), part_of(weights, "contrastive")
    xtr_total, first, second = 0.0, [], []
    for language, tokens, other_language, other_tokens in pairs:
        u, v = embedding(tokens, weights), embedding(other_tokens, weights)
        to_other = xtr_logits(u, LANGUAGES.index(other_language), head)
        to_first = xtr_logits(v, LANGUAGES.index(language), head)
        xtr_total += kl_of_target(to_other, other_tokens) + kl_of_target(to_first, tokens)
        first.append(contrastive_projection(u, projection))
        second.append(contrastive_projection(v, projection))
    return {
        "xtr": xtr_total / len(pairs),
        "contrastive": contrastive_sum(first, second, 0.3) / len(pairs),
    }


def test_a_batch_is_laid_out_as_documented(store):
    """Shortest sentence first; row i is the first side of pair i, row B + i its second."""
    groups, within = np.array([1, 0, 0, 2]), np.array([1, 2, 1, 0])
    pairs = [all_pairs()[at] for at in (4, 2, 1, 5)]
    sides = [pair[:2] for pair in pairs] + [pair[2:] for pair in pairs]
    batch = store.assemble(groups, within)
    assert batch.pairs == 4
    order = sorted(range(8), key=lambda row: (len(sides[row][1]), row))
    assert batch.rows.tolist() == order
    assert batch.lengths.tolist() == [len(sides[row][1]) for row in order]
    assert batch.tokens.tolist() == [token for row in order for token in sides[row][1]]
    assert batch.languages.tolist() == [LANGUAGES.index(code) for code, _ in sides]


def test_each_side_predicts_the_other_sides_tokens_told_the_other_sides_language(store):
    system = make_system()
    weights = weights_of(system)
    groups, within = np.array([2, 0, 1, 0, 1, 0]), np.array([0, 1, 1, 0, 0, 2])  # all, mixed
    starts = np.cumsum([0, *map(len, PAIRS.values())])
    pairs = [all_pairs()[starts[group] + at] for group, at in zip(groups, within, strict=True)]
    batch = DeviceBatch.of(store.assemble(groups, within), torch.device("cpu"))
    expected = expected_parts(pairs, weights)
    found = {name: value.item() for name, value in system(batch).items()}
    assert found["xtr"] == pytest.approx(expected["xtr"], rel=1e-6)
    assert found["contrastive"] == pytest.approx(expected["contrastive"], rel=1e-9)
    assert found["total"] == pytest.approx(sum(expected.values()), rel=1e-6)


def test_a_batch_made_by_hand_gives_the_loops_numbers_too():
    """The fields of `Batch` as documented: shortest first, rows i and B + i, languages by row."""
    system = make_system()
    weights = weights_of(system)
    pairs = [("de", [6], "en", [7, 8, 7]), ("en", [9, 4, 4, 2], "zh", [3, 3])]
    batch = Batch(
        tokens=np.array([6, 3, 3, 7, 8, 7, 9, 4, 4, 2]),
        lengths=np.array([1, 2, 3, 4]),
        rows=np.array([0, 3, 2, 1]),
        languages=np.array([1, 0, 0, 3]),
    )
    expected = expected_parts(pairs, weights)
    found = system(DeviceBatch.of(batch, torch.device("cpu")))
    assert found["xtr"].item() == pytest.approx(expected["xtr"], rel=1e-6)
    assert found["contrastive"].item() == pytest.approx(expected["contrastive"], rel=1e-9)


def one_batch(store):
    return DeviceBatch.of(store.draw(1, 1, 4, 1.0), torch.device("cpu"))


def test_the_total_is_the_weighted_sum_of_the_parts(store):
    parts = make_system(0.25, 3.0)(one_batch(store))
    expected = 0.25 * parts["xtr"] + 3.0 * parts["contrastive"]
    assert parts["total"].item() == pytest.approx(expected.item(), rel=1e-6)


HEADS = {"xtr": "generative", "contrastive": "contrastive"}


@pytest.mark.parametrize("off", list(HEADS))
def test_an_objective_of_weight_zero_has_no_head_and_no_part(off, store):
    system = make_system(**{f"{off}_weight": 0.0})
    kept = set(HEADS) - {off}
    assert set(system.heads) == {HEADS[name] for name in kept}
    assert not [key for key in system.state_dict() if HEADS[off] in key]
    parts = system(one_batch(store))
    assert set(parts) == kept | {"total"}
    assert torch.equal(parts["total"], parts[kept.pop()])


def test_the_encoder_starts_from_the_same_weights_whatever_the_objectives_are():
    both, one = make_system(), make_system(xtr_weight=0.0)
    for key, value in both.encoder.state_dict().items():
        assert torch.equal(value, one.encoder.state_dict()[key]), key


def test_every_weight_of_a_system_is_trained(store):
    system = make_system()
    batch = DeviceBatch.of(
        store.assemble(np.array([0, 0, 1, 2]), np.array([0, 1, 0, 0])), torch.device("cpu")
    )
    system(batch)["total"].backward()
    for name, parameter in system.named_parameters():
        assert parameter.grad.abs().max() > 0, name
