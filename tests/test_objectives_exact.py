"""Law of every objective: value and gradients are its equation's, in float64."""

import numpy as np
import pytest
import torch
from made.encoder_reference import CHANGES as ENCODER_CHANGES
from made.loss_references import CHANGES, MASK, REFERENCES
from made.objectives import (
    batch_of,
    differences,
    gradients,
    noisy_system,
    system_settings,
    weights_of,
)

from ems.model import encoder, packing
from ems.model.objectives.masking import sentence_keys
from ems.model.objectives.system import DeviceBatch

PIECES, WIDTH, LANGUAGES, HEADS = 13, 6, 3, 2
MODEL = {"layers": 2, "width": WIDTH, "heads": HEADS, "feed_forward": 4, "max_tokens": 7}
MODEL |= {"dropout": 0, "attention_dropout": 0}
HEAD = {"language_width": 3, "bias": True}
OFF = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}}
ONE, DISTINCT = {"input_mask": "one"}, {"target": "distinct"}
CASES = {  # name: (the objective, its settings, those of all, those of training)
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
    "groups of both sides": (
        "contrastive",
        {"negatives": 2, "both_sides": True, "margin": 0.2},
        {},
        {},
    ),
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


def computed(name, model=MODEL, **head):
    """(loss, gradient by parameter) of the system."""
    system, objectives = made_system(name, model, **head)
    batch = batch_of(sentences(hidden_by(name)))
    batch.keys = sentence_keys(batch) if objectives["contrastive"]["mask_duplicates"] else None
    batch.targets = targets_of(name)
    parts = system(DeviceBatch.copy(batch, torch.device("cpu")))
    assert list(parts) == system.parts
    assert {CASES[name][0], "total"} <= parts.keys()
    return gradients(parts["total"], system.named_parameters())


def expected(name, change=None, of_encoder=None, **head):
    """The same of the reference, whose sum is divided by the pairs (Eq. 12)."""
    system, objectives = made_system(name, **head)
    weights, rows = weights_of(system), sentences(hidden_by(name))
    pairs = list(zip(rows[: len(PAIRS)], rows[len(PAIRS) :], strict=True))
    parts = {**weights, "heads": HEADS, "change": of_encoder, "pooling": POOLED.get(name)}
    others = {"settings": objectives, "targets": targets_of(name)}
    loss = REFERENCES[name](parts, pairs, change, **others) / len(PAIRS)
    return gradients(loss, weights)


def same(first, second):
    """Whether two (loss, gradients) agree to rounding."""
    size = max(1, abs(first[0]), *(gradient.abs().max().item() for gradient in first[1].values()))
    return max(differences(first, second).values()) < 1e-9 * size


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


@pytest.mark.parametrize("name", CASES)
def test_a_reference_with_one_term_changed_is_noticed(name):
    own = computed(name)
    assert [change for change in CHANGES[name] if same(own, expected(name, change))] == []


def test_attention_with_a_dropout_that_drops_nothing_equals_it_too(monkeypatch):
    calls, plainly = [], encoder._attend_plainly
    monkeypatch.setattr(
        encoder, "_attend_plainly", lambda *parts: calls.append(1) or plainly(*parts)
    )
    never = {**MODEL, "attention_dropout": 1e-15}  # a share that no random number reaches
    assert same(computed("xtr", never), expected("xtr"))
    assert calls, "the path with dropout was not taken"


@pytest.mark.parametrize("change", ENCODER_CHANGES)
def test_an_encoder_with_one_term_changed_is_noticed(change):
    assert not same(computed("xtr"), expected("xtr", of_encoder=change))


def test_the_batch_has_several_padded_groups():
    groups = packing.pack(torch.from_numpy(batch_of(sentences("none")).lengths)).groups
    assert len(groups) > 2
    assert any(not group.real.all() for group in groups)
