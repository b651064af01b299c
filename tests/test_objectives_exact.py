"""Law of every objective: value and gradients are its equation's, in float64."""

import math

import numpy as np
import pytest
import torch
from made.objectives import batch_of, noisy_system, system_settings, weights_of
from made.references import MASK, REFERENCES, dense_losses

from ems.model import encoder, packing
from ems.model.objectives import contrastive, fused
from ems.model.objectives.fused import Logits, Target, entropy, fused_cross_entropy, kl_loss
from ems.model.objectives.masking import sentence_keys
from ems.model.objectives.system import DeviceBatch
from ems.model.objectives.xtr import sample, sampled_cross_entropy, xtr_target

PIECES, WIDTH, LANGUAGES, HEADS = 13, 6, 3, 2
MODEL = {"layers": 2, "width": WIDTH, "heads": HEADS, "feed_forward": 4, "max_tokens": 7}
MODEL |= {"dropout": 0, "attention_dropout": 0}
HEAD = {"language_width": 3, "bias": True}
OFF = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}}
ONE, DISTINCT = {"input_mask": "one"}, {"target": "distinct"}
BOTH = {"both_sides": True, "margin": 0.2}
CASES = {  # name: (objective, its settings, the others', training)
    "xtr": ("xtr", {}, {"head": HEAD}, {}),
    "xtr distinct": ("xtr", DISTINCT, {"head": HEAD}, ONE),
    "ugt": ("ugt", {}, {"head": HEAD}, {}),
    "ugt distinct": ("ugt", DISTINCT, {"head": HEAD}, {}),
    "smlm": ("smlm", {}, {"head": HEAD}, {}),
    "mlm": ("mlm", {}, {"head": HEAD}, {}),
    "contrastive": ("contrastive", {"width": 3}, {}, {}),
    "dot": ("contrastive", {"width": 3, "similarity": "dot", "temperature": 2}, {}, {}),
    "margin": ("contrastive", {"width": 0, "margin": 0.3, "temperature": 0.3}, {}, {}),
    "both sides": ("contrastive", {"both_sides": True}, {}, {}),
    "duplicates": ("contrastive", {"mask_duplicates": True}, {}, {}),
    "groups": ("contrastive", {"negatives": 3}, {}, {}),
    "groups of both sides": ("contrastive", {"negatives": 2, **BOTH}, {}, {}),
    "align": ("align", {}, {}, {}),
    "align in groups": ("align", {}, {"contrastive": {"weight": 0, "negatives": 3}}, {}),
    "similarity": ("similarity", {}, {}, {}),
    "similarity sum": ("similarity", {"reduction": "sum"}, {}, {}),
    "matryoshka": ("matryoshka", {"dimensions": [2, 4]}, {}, {}),
    "context": ("context", {}, {}, {}),
    "context printed": ("context", {"loss": "printed"}, {}, {}),
    "xtr mean-max": ("xtr", {}, {"head": HEAD}, {}),
    "contrastive mean-max": ("contrastive", {"width": 3}, {}, {}),
    "coherence": ("coherence", {}, {}, {"start_from": "another"}),
}
POOLED = dict.fromkeys(("context", "coherence", "xtr mean-max", "contrastive mean-max"), "mean-max")
# (language, tokens) of both sides, repeated tokens in most; pairs 0 and 3 share their first side
PAIRS = [
    ((0, [6, 7, 7, 9]), (1, [10, 11])),
    ((2, [8]), (0, [6, 6, 12, 8, 6])),
    ((1, [9, 10, 9]), (0, [7, 11, 7, 7])),
    ((0, [6, 7, 7, 9]), (2, [12, 12, 8])),
    ((1, [11, 12]), (0, [9, 6])),
    ((2, [7, 7, 10]), (0, [11])),
]
# one for UGT and SMLM: in S1 or S2, a token that the other side has too or not, once or twice
ONE_EACH = [(0, 1), (1, 3), (0, 1), (1, 1), (1, 0), (0, 1)]  # (side, position) of each pair
OF_MLM = {  # positions of each row
    **{0: [1, 3], 1: [0], 2: [2], 3: [0], 4: [1], 5: [0]},
    **{6: [1], 7: [0, 2, 4], 8: [3], 9: [1], 10: [0], 11: [0]},
}


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch):
    """A small batch has several padded groups."""
    monkeypatch.setattr(packing, "LEAST", 3)


def sentences(hide):
    """Rows 0 .. B - 1 are first sides, B .. 2B - 1 second sides; hidden tokens by position."""
    rows = [PAIRS[at % len(PAIRS)][at // len(PAIRS)] for at in range(2 * len(PAIRS))]
    places = {"none": {}, "mlm": OF_MLM}.get(hide)
    if places is None:
        places = {at + side * len(PAIRS): [place] for at, (side, place) in enumerate(ONE_EACH)}
    made = []
    for row, (language, tokens) in enumerate(rows):
        hidden = {at: tokens[at] for at in places.get(row, [])}
        seen = [MASK if at in hidden else token for at, token in enumerate(tokens)]
        made.append({"language": language, "tokens": tokens, "input": seen, "hidden": hidden})
    return made


SIMILARITIES = np.linspace(-0.4, 0.9, 2 * len(PAIRS))


def hidden_by(name):
    ones = ("ugt", "ugt distinct", "smlm", "xtr distinct")
    return "mlm" if name == "mlm" else "one" if name in ones else "none"


def made_system(name, model=MODEL, **head):
    objective, own, others, train = CASES[name]
    objectives = {**OFF, **others, objective: {"weight": 1, **own}}
    if head:
        objectives["head"] = {**objectives["head"], **head}
    model = {**model, "pooling": POOLED.get(name, "mean")}
    settings = system_settings(model, objectives, train)
    return noisy_system(settings, LANGUAGES, PIECES), settings.objectives.model_dump()


def targets_of(name):
    """1 for true and 0 for replaced sentences, or the similarities of mined ones."""
    return SIMILARITIES if name == "coherence" else np.repeat([1.0, 0.0], len(PAIRS))


def loss_and_gradients(loss, weights):
    """The loss and the gradients of all weights, zero if there is none, in one vector."""
    parts = torch.autograd.grad(loss, [*weights], materialize_grads=True)
    return torch.cat([loss.detach()[None], *(part.flatten() for part in parts)])


def computed(name, model=MODEL, **head):
    system, objectives = made_system(name, model, **head)
    batch = batch_of(sentences(hidden_by(name)))
    batch.keys = sentence_keys(batch) if objectives["contrastive"]["mask_duplicates"] else None
    batch.targets = targets_of(name)
    parts = system(DeviceBatch.copy(batch, torch.device("cpu")))
    assert list(parts) == system.parts
    assert {CASES[name][0], "total"} <= parts.keys()
    return loss_and_gradients(parts["total"], system.parameters())


def expected(name, **head):
    """The same of the reference, whose sum is divided by the pairs (Eq. 12)."""
    system, objectives = made_system(name, **head)
    weights, rows = weights_of(system), sentences(hidden_by(name))
    pairs = list(zip(rows[: len(PAIRS)], rows[len(PAIRS) :], strict=True))
    parts = {**weights, "heads": HEADS, "pooling": POOLED.get(name)}
    loss = REFERENCES[name](parts, pairs, settings=objectives, targets=targets_of(name))
    return loss_and_gradients(loss / len(PAIRS), weights.values())


def same(first, second):
    return (first - second).abs().max() < 1e-9 * max(1, first.abs().max())


VARIED = {
    "as it is": {},
    "no language": {"language_width": 0},
    "shared": {"output": "shared"},
    "shared, no language": {"output": "shared", "language_width": 0},
    "no bias": {"bias": False},
    "layer norm": {"layer_norm": True},
}
PLAIN = [(name, "as it is") for name in CASES]
VARIANTS = [(name, head) for name in ("xtr", "ugt", "smlm", "mlm") for head in list(VARIED)[1:]]


@pytest.mark.parametrize(("name", "head"), PLAIN + VARIANTS)
def test_an_objective_and_its_gradients_equal_its_equation(name, head):
    assert same(computed(name, **VARIED[head]), expected(name, **VARIED[head]))


SHARED = {"contrastive": 1, "margin": 1, "duplicates": 1, "groups": 1, "matryoshka": 2}


@pytest.mark.parametrize("name", [*SHARED, "dot", "both sides"])
def test_directions_that_share_their_exponentials_equal_it_too(name, monkeypatch):
    calls, apply = [], contrastive._BothDirections.apply
    spy = lambda *parts: calls.append(1) or apply(*parts)  # noqa: E731
    monkeypatch.setattr(contrastive._BothDirections, "apply", spy)
    monkeypatch.setattr(contrastive, "MANY", 1)
    assert same(computed(name), expected(name))
    assert len(calls) == SHARED.get(name, 0)
    monkeypatch.setattr(contrastive, "LARGEST", 1)
    assert same(computed(name), expected(name))
    assert len(calls) == SHARED.get(name, 0), "scores of any size were allowed"


def test_every_setting_of_an_objective_has_a_loss_of_its_own():
    """Else the batch would not show whether the setting is heeded."""
    losses = [expected(name, **VARIED[head])[0].item() for name, head in PLAIN + VARIANTS]
    assert len({round(loss, 9) for loss in losses}) == len(losses)


def test_attention_with_a_dropout_that_drops_nothing_equals_it_too(monkeypatch):
    calls, plainly = [], encoder._attend_plainly
    monkeypatch.setattr(
        encoder, "_attend_plainly", lambda *parts: calls.append(1) or plainly(*parts)
    )
    never = {**MODEL, "attention_dropout": 1e-15}  # a share that no random number reaches
    assert same(computed("xtr", never), expected("xtr"))
    assert calls, "the path with dropout was not taken"


def test_the_batch_has_several_padded_groups():
    groups = packing.pack(torch.from_numpy(batch_of(sentences("none")).lengths)).groups
    assert len(groups) > 2
    assert any(not group.real.all() for group in groups)


VOCABULARY, STATE, ROWS = 12, 4, 5  # pieces, width of a state, states
# (row, token, weight): a token twice in a row, masses below and above 1, row 3 without a label
ENTRIES = [(0, 1, 0.5), (4, 6, 0.25), (0, 2, 0.3), (1, 3, 1.7), (0, 1, 0.2), (2, 0, 0.4)]
ENTRIES += [(4, 6, 0.5)]
LABELS = {token for _, token, _ in ENTRIES}


def problem():
    """States, output matrix and bias in float64, and ENTRIES as a target."""
    generator = torch.Generator().manual_seed(3)
    factors = [
        torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True)
        for shape in ((ROWS, STATE), (VOCABULARY, STATE), (VOCABULARY,))
    ]
    row, token, weight = zip(*ENTRIES, strict=True)
    weights = torch.tensor(weight, dtype=torch.float64)
    return factors, Target(torch.tensor(row), torch.tensor(token), weights)


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("rows", [1, 2, ROWS])
def test_fused_losses_and_their_gradients_equal_dense_rows(rows, biased, monkeypatch):
    monkeypatch.setattr(fused, "CHUNK", rows * VOCABULARY)
    (states, output, bias), target = problem()
    leaves = [states, output, *[bias] * biased]
    expected = dense_losses(states @ output.T + bias * biased, target)
    losses = [loss(Logits(*leaves), target) for loss in (fused_cross_entropy, kl_loss)]
    for own, true in zip(losses, expected, strict=True):
        torch.testing.assert_close(own, true, rtol=1e-12, atol=0)
        both = (torch.autograd.grad(loss, leaves, retain_graph=True) for loss in (own, true))
        torch.testing.assert_close(*both, rtol=1e-12, atol=1e-12)
    assert entropy(target, VOCABULARY).item() == pytest.approx((expected[0] - expected[1]).item())


def test_a_second_backward_pass_over_one_graph_gives_the_same_gradients():
    factors, target = problem()
    loss = fused_cross_entropy(Logits(*factors), target) * 3
    first = torch.autograd.grad(loss, factors, retain_graph=True)
    assert all(map(torch.equal, torch.autograd.grad(loss, factors), first))


def test_validation_computes_no_gradient(monkeypatch):
    (states, output, bias), target = problem()
    expected, made = kl_loss(Logits(states, output, bias), target).item(), pytest.fail
    monkeypatch.setattr(torch, "empty", lambda *_, **__: made("a gradient buffer was made"))
    with torch.no_grad():
        assert kl_loss(Logits(states, output, bias), target).item() == expected


def test_a_chunk_never_holds_more_logits_than_its_limit(monkeypatch):
    sizes, softmax = [], torch.softmax

    def spy(logits, dim, out):
        sizes.append(logits.numel())
        return softmax(logits, dim=dim, out=out)

    monkeypatch.setattr(torch, "softmax", spy)
    monkeypatch.setattr(fused, "CHUNK", 2 * VOCABULARY)
    (states, output, _), target = problem()
    kl_loss(Logits(states, output), target)
    assert sizes == [2 * VOCABULARY, 2 * VOCABULARY, VOCABULARY]


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("count", [VOCABULARY, VOCABULARY - len(LABELS)])
def test_a_sample_of_all_pieces_gives_the_full_loss_and_gradients(count, biased):
    (states, output, bias), target = problem()
    leaves = [states, output, *([bias] if biased else [])]
    losses = (
        sampled_cross_entropy(Logits(*leaves), target, count),
        fused_cross_entropy(Logits(*leaves), target),
    )
    torch.testing.assert_close(*losses, rtol=1e-12, atol=0)
    gradients = [torch.autograd.grad(loss, leaves) for loss in losses]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [1, 3, 6])
def test_a_sampled_loss_is_the_estimator_of_its_pieces(count):
    (states, output, bias), target = problem()
    torch.manual_seed(11)
    chosen = sample(target.token, VOCABULARY, count)[0].tolist()
    assert len(set(chosen)) == len(chosen) == len(LABELS) + count
    torch.manual_seed(11)
    loss = sampled_cross_entropy(Logits(states, output, bias), target, count)
    shift = torch.full((VOCABULARY,), -1e4, dtype=torch.float64)  # not in the sample
    shift[chosen] = -math.log(count / (VOCABULARY - len(LABELS)))
    shift[[*LABELS]] = 0
    expected, _ = dense_losses(states @ output.T + bias + shift, target)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)


TARGETS = [[0, 1], [5], [3, 3, 2], [4, 0, 5, 0], [1, 1, 1, 1, 2]]


SIGNS = [  # of rows of logits at both ends: one high, one low, all high, all low, and halves
    [1, -1, -1, -1, -1, -1],
    [-1, 1, 1, 1, 1, 1],
    [1, 1, 1, 1, 1, 1],
    [-1, -1, -1, -1, -1, -1],
    [1, 1, 1, -1, -1, -1],
]
NEAR = [(None, 1e-6, 1e-5, 1e-6), (torch.bfloat16, 0.01, 0.01, 0.01)]


@pytest.mark.parametrize(("dtype", "of_loss", "rtol", "atol"), NEAR, ids=["float32", "bfloat16"])
@pytest.mark.parametrize("chunk", [1 << 22, 6], ids=["at once", "row by row"])
@pytest.mark.parametrize("scale", [1.0, 80.0, 1e4])
def test_extreme_logits_are_near_float64(scale, chunk, dtype, of_loss, rtol, atol, monkeypatch):
    """The output matrix is the identity, so that states are logits."""
    monkeypatch.setattr(fused, "CHUNK", chunk)
    row = torch.tensor([at for at, words in enumerate(TARGETS) for _ in words])
    token = torch.tensor([word for words in TARGETS for word in words])
    lengths = torch.tensor([len(words) for words in TARGETS])
    logits = (scale * torch.tensor(SIGNS, dtype=torch.float64)).requires_grad_()
    _, total = dense_losses(logits, xtr_target(row, token, lengths, torch.float64))
    total.backward()
    states, output = logits.detach().float().requires_grad_(), torch.eye(6).requires_grad_()
    loss = kl_loss(
        Logits(states, output, dtype=dtype), xtr_target(row, token, lengths, torch.float32)
    )
    loss.backward()
    assert loss.item() == pytest.approx(total.item(), rel=of_loss)
    assert {loss.dtype, states.grad.dtype, output.grad.dtype} == {torch.float32}
    near = {"check_dtype": False, "rtol": rtol}
    torch.testing.assert_close(states.grad, logits.grad, **near, atol=atol)
    expected = logits.grad.T @ logits.detach() / scale
    torch.testing.assert_close(output.grad / scale, expected, **near, atol=2 * atol)


def test_sums_over_many_rows_are_not_bfloat16(monkeypatch):
    """In bfloat16, adding ones to a sum stops at 256."""
    rows, pieces = 3000, 4
    monkeypatch.setattr(fused, "CHUNK", pieces)
    states = torch.zeros(rows, pieces, requires_grad=True)
    output = torch.eye(pieces).requires_grad_()
    row, token = torch.arange(rows), torch.zeros(rows, dtype=torch.long)
    target = xtr_target(row, token, torch.ones(rows).long(), torch.float32)
    loss = kl_loss(Logits(states, output, dtype=torch.bfloat16), target)
    assert loss.item() == pytest.approx(rows * math.log(pieces), rel=1e-3)
