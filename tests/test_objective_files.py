"""Laws of the objectives as files: one file is one objective, and nothing else has to know it."""

import ast
import sys
from dataclasses import replace

import pytest
import torch
from conftest import ROOT
from made.recipes import files
from made.train import rows
from safetensors.torch import load_file

from ems.base.errors import EmsError
from ems.base.provenance import source_files
from ems.base.schema import with_fields
from ems.config.file import experiment_model, overrides_model
from ems.config.objectives import Objectives, Weighted, objectives_model
from ems.config.systems import trained_model
from ems.model import objectives
from ems.model.objectives.system import System, load_objectives

TOY = files("An objective")["extensions/objectives/toy.py"]
NAMES = list(Objectives.model_fields.keys() - {"head"})
WITH_TOY = {"toy": {"weight": 1, "power": 2}}


@pytest.fixture
def _toy_file(tmp_path, monkeypatch):
    """The toy objective in a folder that the package `ems.model.objectives` looks into as well."""
    folder = tmp_path / "objectives"
    folder.mkdir()
    (folder / "toy.py").write_text(TOY)
    monkeypatch.setattr(objectives, "__path__", [objectives.__path__[0], str(folder)])
    models = (objectives_model, overrides_model, experiment_model, trained_model)
    for model in models:
        model.cache_clear()
    yield
    for model in models:
        model.cache_clear()
    sys.modules.pop("ems.model.objectives.toy", None)


@pytest.mark.usefixtures("_toy_file")
def test_an_objective_that_is_one_file_is_trained(toy, tmp_path):
    toy.train(tmp_path, objectives=WITH_TOY)
    losses = [row["toy"] for row in rows(tmp_path / "model", "validation")]
    assert losses[-1] < losses[0]
    row = rows(tmp_path / "model", "train")[-1]
    parts = ["xtr", "contrastive", "toy"]
    assert list(row)[3:] == [*parts, "total", "lr"]
    assert row["total"] == pytest.approx(sum(row[name] for name in parts), rel=1e-5)
    assert load_file(tmp_path / "model/heads.safetensors")["toy.weight"].shape == (16, 16)


@pytest.mark.usefixtures("_toy_file")
def test_its_parameters_come_after_those_of_the_others_and_change_none_of_them(toy):
    systems = []
    for experiment in (toy.experiment(), toy.experiment(objectives=WITH_TOY)):
        torch.manual_seed(3)
        systems.append(System(experiment.systems["ems"], 3, 300).state_dict())
    old, new = systems
    assert list(new) == [*old, "heads.toy.weight", "heads.toy.bias"]
    assert all(torch.equal(new[name], value) for name, value in old.items())


def test_an_objective_without_a_file_is_an_error_that_says_where_it_was_looked_for(toy):
    with_toy = with_fields(Objectives, "Objectives", toy=Weighted)(toy={"weight": 1})
    with pytest.raises(EmsError, match=r"objectives\.toy: expected a file toy\.py in .*objectives"):
        System(replace(toy.experiment().systems["ems"], objectives=with_toy), 3, 300)


def test_every_key_of_the_schema_is_a_file_and_its_order_is_its_own():
    loaded = load_objectives(Objectives(**{name: {"weight": 1} for name in NAMES}))
    orders = [objective.order for objective in loaded.values()]
    assert len(set(orders)) == len(NAMES) > 8


@pytest.mark.parametrize("backwards", [False, True])
def test_the_order_of_the_keys_of_an_experiment_is_not_that_of_the_sums(backwards):
    names = sorted(NAMES, reverse=backwards)
    loaded = load_objectives(Objectives(**{name: {"weight": 1} for name in names}))
    generative = ["xtr", "ugt", "smlm", "mlm"]
    others = ["align", "similarity", "matryoshka", "context", "coherence"]
    assert list(loaded) == [*generative, "contrastive", *others]


def test_the_source_of_training_holds_every_objective_by_its_file():
    sources = set(source_files("ems.train.job"))
    assert {ROOT / "ems/model/objectives" / f"{name}.py" for name in NAMES} <= sources


def test_the_trainer_names_no_objective():
    own = [path for path in source_files("ems.train.job") if path.parent == ROOT / "ems/train"]
    assert len(own) > 5
    for path in own:
        tree = ast.parse(path.read_text())
        words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert not words & set(NAMES), path
        assert not imported & {f"ems.model.objectives.{name}" for name in NAMES}, path
