"""Laws of the papers' systems: what each overrides, its losses, its size, and that it trains."""

import numpy as np
import pytest
import torch
from conftest import ROOT
from made.experiments import shipped

from ems.base.schema import plain
from ems.config.load import load_yaml
from ems.model.objectives.system import DeviceBatch, System
from ems.shards.reader import Batch

EXPERIMENTS = ["demo-full", "ems62"]
BOTH = ["xtr", "contrastive"]
CONTRASTIVE, XTR = "objectives.contrastive", "objectives.xtr.weight"
SYSTEMS = {  # the keys that a system overrides, and its loss parts
    "ems": ([], BOTH),
    "ems-no-langs": (["objectives.head.language_width"], BOTH),
    "ems-no-cntrs": ([f"{CONTRASTIVE}.weight"], ["xtr"]),
    "ems-no-xtr": ([XTR], ["contrastive"]),
    "ems-no-mlp": ([f"{CONTRASTIVE}.width"], BOTH),
    "ems-shared": (["objectives.head.output"], BOTH),
    "ems-ugt": ([XTR, "objectives.ugt.weight"], ["ugt", "contrastive"]),
    "ems-batch-200": ([f"{CONTRASTIVE}.negatives", "train.batch_pairs", "train.steps"], BOTH),
    **{f"ems-{layers}-layers": (["model.layers"], BOTH) for layers in (2, 4, 12)},
    "labse-ems-vanilla": (
        [XTR, f"{CONTRASTIVE}.margin", f"{CONTRASTIVE}.width"],
        ["contrastive"],
    ),
    "labse-ems-mlp": ([XTR, f"{CONTRASTIVE}.margin"], ["contrastive"]),
    "labse-ems-joint": ([f"{CONTRASTIVE}.margin"], BOTH),
    "ems-both-sides": ([f"{CONTRASTIVE}.both_sides"], BOTH),
    "ems-mask-duplicates": ([f"{CONTRASTIVE}.mask_duplicates"], BOTH),
    "ems-margin-schedule": (
        [f"{CONTRASTIVE}.margin", f"{CONTRASTIVE}.margin_warmup_steps"],
        BOTH,
    ),
    "ems-matryoshka": (
        [f"objectives.matryoshka.{key}" for key in ("weight", "dimensions")],
        [*BOTH, "matryoshka"],
    ),
}
RELEASED = {  # original-code.md sections 8 to 10
    "model.start": "pytorch",
    "model.norm_eps": 1e-12,
    "objectives.head.layer_norm": True,
    "objectives.head.dropout": 0.1,
    "objectives.xtr.target": "distinct",
    "train.amsgrad": True,
    "train.schedule": "cosine",
    "train.input_mask": "one",
}
ON_A_GPU = {  # at the size of the paper; the demo trains on a CPU, which has no float16
    "train.precision": "float16",
    "train.keep": "best",
    "train.schedule_steps": 15 * 244_392,  # epochs of its configuration
    "train.validate_every": 244_392 // 6,
}
ALL = {**SYSTEMS, "ems-released": (list(RELEASED), BOTH)}


@pytest.fixture(scope="module", params=EXPERIMENTS)
def loaded(request):
    """(its entries under `systems` as written, the experiment)."""
    written = load_yaml(ROOT / "configs" / f"{request.param}.yaml")["systems"]
    return written, shipped(request.param)


def leaves(value, front=""):
    """The dotted keys of nested mappings, with their values."""
    if not isinstance(value, dict):
        return {front.rstrip("."): value}
    return {k: v for key, part in value.items() for k, v in leaves(part, f"{front}{key}.").items()}


# --- sizes, counted from what the papers say of the layers


def norm(width):
    return 2 * width


def encoder_size(model, pieces):
    width, inner = model.width, model.feed_forward
    attention = 4 * (width * width + width)
    feed_forward = width * inner + inner + inner * width + width
    layer = attention + norm(width) + feed_forward + norm(width)
    return (pieces + model.max_tokens) * width + norm(width) + model.layers * layer


def generative_size(model, head, languages, pieces):
    tag, joined = head.language_width, head.language_width + model.width
    out = model.width if head.output == "shared" else joined
    norms = norm(tag) + norm(out) if head.layer_norm else 0
    own = 0 if head.output == "shared" else pieces * out
    return languages * tag + joined * out + out + norms + own + (pieces if head.bias else 0)


def expected_size(settings, languages, pieces, parts):
    objectives, width = settings.objectives, settings.model.width
    size = encoder_size(settings.model, pieces)
    if {"xtr", "ugt"} & set(parts):
        size += generative_size(settings.model, objectives.head, languages, pieces)
    if "contrastive" in parts and (out := objectives.contrastive.width):
        size += width * width + width + width * out + out
    return size


def made(settings, languages, pieces, device="meta"):
    """Its system; on the meta device, shapes without memory."""
    with torch.device(device):
        return System(settings, languages, pieces)


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


# --- each system


def test_both_experiments_have_exactly_these_systems(loaded):
    """Those of the monolingual paper in demo-full have vocabularies of their own; our recipe is in
    ems62 alone.
    """
    written, _ = loaded
    trained = {
        name
        for name, entry in written.items()
        if entry.get("kind") is None and "vocabulary" not in entry
    }
    assert trained - {"untrained", "ems-plus"} == set(ALL)


def test_our_recipe_sees_as_many_pairs_as_the_papers_and_adds_nothing_but_tables_to_its_encoder():
    experiment = shipped("ems62")
    ems, ours = (experiment.systems[name] for name in ("ems", "ems-plus"))
    seen = [system.train.steps * system.train.batch_pairs for system in (ems, ours)]
    assert abs(seen[0] - seen[1]) < ours.train.batch_pairs
    pieces, languages = experiment.vocabulary.size, len(experiment.languages)
    system, table = made(ours, languages, pieces), ours.model.table
    tables = (pieces + ours.model.ngrams) * table + table * ours.model.width
    assert count(system.encoder) == encoder_size(ems.model, pieces) + tables
    assert count(system) == count(system.encoder)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_a_system_overrides_at_most_three_settings_and_each_says_something_else(loaded, name):
    written, systems = loaded
    keys = sorted(SYSTEMS[name][0])
    assert sorted(leaves(written[name])) == keys
    assert len(keys) <= 3
    base, own = (leaves(plain(systems.systems[system])) for system in ("ems", name))
    assert sorted(key for key in own if own[key] != base[key]) == keys


def test_the_released_code_is_all_of_its_differences(loaded):
    written, experiment = loaded
    own = ON_A_GPU if experiment.name == "ems62" else {}
    assert leaves(written["ems-released"]) == RELEASED | own


@pytest.mark.parametrize("name", list(ALL))
def test_a_system_has_the_heads_and_the_parameters_of_its_parts(loaded, name):
    _, systems = loaded
    pieces, languages = systems.vocabulary.size, len(systems.languages)
    system = made(systems.systems[name], languages, pieces)
    assert list(system.objectives) == ALL[name][1]
    expected = expected_size(systems.systems[name], languages, pieces, ALL[name][1])
    assert count(system) == expected


def batch(pieces, languages, pairs):
    """Random pairs, shortest sentence first, prepared as in training."""
    random = np.random.default_rng(0)
    lengths = np.sort(random.integers(1, 12, 2 * pairs))
    tokens = random.integers(3 + languages, pieces, lengths.sum())
    rows, of = random.permutation(2 * pairs), random.integers(0, languages, 2 * pairs)
    return Batch(tokens, lengths, rows, of)


@pytest.mark.parametrize("name", list(ALL))
def test_a_few_steps_of_a_system_lower_its_loss_and_move_all_of_its_weights(name):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    settings = shipped("demo-full").systems[name]
    still = {"model": {"dropout": 0.0, "attention_dropout": 0.0}}
    still["objectives"] = {"head": {"dropout": 0.0}}
    system = made(settings.overridden(still), 8, 200, "cpu")
    first = {key: value.clone() for key, value in system.named_parameters()}
    optimizer = torch.optim.Adam(system.parameters(), lr=0.003)
    prepared = system.prepared(
        batch(200, 8, 2 * system.negatives), 1, 200
    )  # the margin is whole by then
    totals = []
    for _ in range(5):
        parts = system(DeviceBatch.copy(prepared, torch.device("cpu")))
        assert set(parts) == {*ALL[name][1], "total"}
        optimizer.zero_grad()
        parts["total"].backward()
        optimizer.step()
        totals.append(parts["total"].item())
    assert totals[-1] < totals[0]
    still = [key for key, value in system.named_parameters() if torch.equal(value, first[key])]
    assert still == []


# --- the papers' numbers


def paper(name):
    experiment = shipped("ems62")
    return made(experiment.systems[name], 62, 60_000)


def test_the_systems_of_ems_have_the_papers_208_8_137_147_and_139_5_million_weights():
    """The authors' code counts a position of padding more (original-code.md 8)."""
    ems, released = paper("ems"), paper("ems-released")
    assert count(ems) == 208_779_264
    assert count(ems.encoder) == 137_142_272
    assert count(ems) - ems.encoder.tokens.weight.numel() == 147_339_264
    assert count(released) + 1024 == 208_782_848
    assert count(released.encoder) + 1024 == 137_143_296
    assert count(released) - count(ems) == norm(128) + norm(1152)
    assert count(paper("ems-shared")) + norm(128) + norm(1024) + 1024 == 139_515_008


def test_lightweight_has_30_2_million_weights():
    """30,223,184 in the authors' code, whose head has a layer norm and a position of padding."""
    model = {"layers": 2, "width": 512, "heads": 8, "feed_forward": 1024, "max_tokens": 200}
    weights = {"contrastive": 0, "xtr": 0, "ugt": 1, "align": 1, "similarity": 1}
    objectives = {name: {"weight": weight} for name, weight in weights.items()}
    objectives["head"] = {"language_width": 0, "output": "shared", "bias": True}
    ems = shipped("ems62").systems["ems"]
    settings = ems.overridden({"model": model, "objectives": objectives})
    assert count(made(settings, 2, 50_000)) == 30_221_648
    settings = settings.overridden({"objectives": {"head": {"layer_norm": True}}})
    assert count(made(settings, 2, 50_000)) + 512 == 30_223_184


# --- start values of the authors' code


def test_the_start_values_of_the_authors_code_are_pytorchs_and_all_layers_are_alike():
    settings = shipped("demo-full").systems["ems-released"]
    torch.manual_seed(0)
    system = made(settings, 8, 3000, "cpu")
    encoder = system.encoder
    assert not encoder.tokens.weight[0].any()  # <pad>
    assert encoder.tokens.weight[1:].std().item() == pytest.approx(1, rel=0.02)
    assert encoder.positions.weight.std().item() == pytest.approx(1, rel=0.05)
    first = encoder.layers[0].state_dict()
    for layer in encoder.layers[1:]:
        assert all(torch.equal(value, first[key]) for key, value in layer.state_dict().items())
    bound = 1 / settings.model.width**0.5  # U(+-1 / sqrt(fan in))
    for linear in (encoder.layers[0].inner, system.heads["contrastive"].inner):
        for values in (linear.weight, linear.bias):
            assert 0.9 * bound < values.abs().max().item() <= bound
    eps = [part.eps for part in system.modules() if isinstance(part, torch.nn.LayerNorm)]
    assert set(eps) == {1e-12}
    assert len(eps) == 1 + 2 * len(encoder.layers) + 2  # with both norms of the generative head


def test_ours_starts_with_layers_that_differ():
    torch.manual_seed(0)
    system = made(shipped("demo-full").systems["ems"], 8, 3000, "cpu")
    first, second = (layer.inner.weight for layer in system.encoder.layers[:2])
    assert not torch.equal(first, second)
