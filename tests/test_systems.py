"""Laws of the papers' systems: what each overrides, its losses, its size, and that it trains."""

import numpy as np
import pytest
import torch
from conftest import ROOT
from made import golden
from made.experiments import differing, leaves, shipped
from made.objectives import STILL

from ems.config.load import load_yaml
from ems.model.objectives.system import DeviceBatch, System
from ems.shards.reader import Batch

EXPERIMENTS = ["demo-full", "ems62"]
NAMES = [
    name
    for name in shipped("ems62").listed
    if shipped("ems62").systems[name].trained and name not in ("untrained", "ems-plus")
]


def made(settings, languages, pieces, device="meta"):
    """A system; on the meta device, shapes without memory."""
    with torch.device(device):
        return System(settings, languages, pieces)


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_overrides_losses_and_weights_of_each_system(experiment):
    written = load_yaml(ROOT / "configs" / f"{experiment}.yaml")["systems"]
    loaded = shipped(experiment)
    lines = []
    for name in NAMES:
        overrides = leaves(written[name])
        others = differing(loaded.systems[name], loaded.systems["ems"])
        assert set(overrides) == others, name  # each override says something else
        system = made(loaded.systems[name], len(loaded.languages), loaded.vocabulary.size)
        changes = ", ".join(f"{key}: {value}" for key, value in overrides.items()) or "the base"
        losses = " + ".join(system.objectives)
        lines += [name, f"    {changes}", f"    {losses}, {count(system):,} weights"]
    golden.check(f"systems/{experiment}.txt", "\n".join([*lines, ""]))


def test_our_recipe_sees_as_many_pairs_as_the_papers_and_adds_nothing_but_tables_to_its_encoder():
    experiment = shipped("ems62")
    ems, ours = (experiment.systems[name] for name in ("ems", "ems-plus"))
    seen = [system.train.steps * system.train.batch_pairs for system in (ems, ours)]
    assert abs(seen[0] - seen[1]) < ours.train.batch_pairs
    pieces, table = experiment.vocabulary.size, ours.model.table
    system, plain_system = (made(each, len(experiment.languages), pieces) for each in (ours, ems))
    tables = (pieces + ours.model.ngrams) * table + table * ours.model.width
    assert count(system.encoder) == count(plain_system.encoder) + tables
    assert count(system) == count(system.encoder)


def batch(pieces, languages, pairs):
    """Random pairs, shortest sentence first, prepared as in training."""
    random = np.random.default_rng(0)
    lengths = np.sort(random.integers(1, 12, 2 * pairs))
    tokens = random.integers(3 + languages, pieces, lengths.sum())
    rows, of = random.permutation(2 * pairs), random.integers(0, languages, 2 * pairs)
    return Batch(tokens, lengths, rows, of)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_few_steps_of_a_system_lower_its_loss_and_move_all_of_its_weights(name):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    settings = shipped("demo-full").systems[name]
    still = {"model": STILL, "objectives": {"head": {"dropout": 0.0}}}
    system = made(settings.overridden(still), 8, 200, "cpu")
    first = {key: value.clone() for key, value in system.named_parameters()}
    optimizer = torch.optim.Adam(system.parameters(), lr=0.003)
    pairs = batch(200, 8, 2 * system.negatives)
    prepared = system.prepared(pairs, 1, 200)  # the margin is whole by then
    totals = []
    for _ in range(5):
        parts = system(DeviceBatch.copy(prepared, torch.device("cpu")))
        assert set(parts) == {*system.objectives, "total"}
        optimizer.zero_grad()
        parts["total"].backward()
        optimizer.step()
        totals.append(parts["total"].item())
    assert totals[-1] < totals[0]
    still = [key for key, value in system.named_parameters() if torch.equal(value, first[key])]
    assert still == []


# --- the papers' numbers


def paper(name):
    return made(shipped("ems62").systems[name], 62, 60_000)


def test_the_systems_of_ems_have_the_papers_208_8_137_147_and_139_5_million_weights():
    """The authors' code counts a position of padding more (https://github.com/Mao-KU/EMS)."""
    ems, released = paper("ems"), paper("ems-released")
    assert count(ems) == 208_779_264
    assert count(ems.encoder) == 137_142_272
    assert count(ems) - ems.encoder.tokens.weight.numel() == 147_339_264
    assert count(released) + 1024 == 208_782_848
    assert count(released.encoder) + 1024 == 137_143_296
    assert count(released) - count(ems) == 2 * 128 + 2 * 1152  # two layer norms
    assert count(paper("ems-shared")) + 2 * 128 + 2 * 1024 + 1024 == 139_515_008


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
