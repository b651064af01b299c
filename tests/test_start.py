"""Laws of `train.start` and `iterations`: a training starts from exactly those weights, its hash
depends on how they were trained, and what cannot be is an error before anything starts."""

import pytest
from experiments_made import changed, one_line
from safetensors.torch import load_file
from train_made import Toy, contents

from ems.config import stage_hash, stage_settings
from ems.train.batches import Data
from ems.train.job import Places, train
from ems.train.step import Trainer

SHORT = {"steps": 4, "validate_every": 4, "checkpoint_every": 2}
NEXT = {"systems": {"ems": {}, "next": {"train": {"start": "ems"}}}, "train": SHORT}
CHAIN = {"systems": {"ems": {}, "next": {"train": {"start": "ems"}, "iterations": 3}}}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return Toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def first(toy, tmp_path_factory):
    return run(toy, tmp_path_factory.mktemp("first"), "ems")


def run(toy, folder, name, start=None, **changes):
    """Train one of the systems of NEXT into `folder`."""
    data = Data(toy.store("training"), toy.store("validation"), toy.vocabulary)
    places = Places(folder / "model", folder / "state", start=start)
    train(toy.experiment(**changed(NEXT, changes)), name, data, places)
    return folder / "model"


def test_without_a_step_the_model_is_the_one_that_it_starts_from(toy, first, tmp_path):
    out = run(toy, tmp_path, "next", first, systems={"next": {"train": {"steps": 0}}})
    for name in ("model.safetensors", "heads.safetensors"):
        ours, theirs = load_file(out / name), load_file(first / name)
        assert ours.keys() == theirs.keys()
        assert all(ours[key].equal(theirs[key]) for key in ours)


def test_heads_of_other_sizes_begin_anew(toy, first, tmp_path):
    wider = {"objectives": {"contrastive": {"width": 12}}, "train": {"steps": 0}}
    out = run(toy, tmp_path, "next", first, systems={"next": wider})
    assert load_file(out / "heads.safetensors")["contrastive.outer.weight"].shape == (12, 16)
    assert (out / "model.safetensors").read_bytes() == (first / "model.safetensors").read_bytes()


def test_it_goes_on_from_there_and_a_killed_run_resumes_to_equal_bytes(
    toy, first, tmp_path, monkeypatch
):
    whole = run(toy, tmp_path / "whole", "next", first)
    assert (
        load_file(whole / "model.safetensors").keys()
        == load_file(first / "model.safetensors").keys()
    )
    assert contents(whole)["model.safetensors"] != contents(first)["model.safetensors"]
    step, own = [], Trainer.step

    def dies(self, batch):
        step.append(batch)
        if len(step) == 4:
            raise KeyboardInterrupt
        return own(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", dies)
        with pytest.raises(KeyboardInterrupt):
            run(toy, tmp_path / "killed", "next", first)
    assert contents(run(toy, tmp_path / "killed", "next", first)) == contents(whole)


def test_the_folder_is_given_where_the_setting_is_and_there_alone(toy, first, tmp_path):
    message = one_line(lambda: run(toy, tmp_path, "next"))
    assert message == "systems.next.train.start: ems; give its model folder, `ems train --start`"
    message = one_line(lambda: run(toy, tmp_path, "ems", first))
    assert message.endswith("systems.ems has no train.start; set it to a system")


@pytest.mark.parametrize("sizes", [{"width": 8}, {"layers": 2}])
def test_an_encoder_of_other_sizes_is_an_error(sizes, toy, first, tmp_path):
    message = one_line(lambda: run(toy, tmp_path, "next", first, model=sizes))
    assert "other sizes" in message
    assert message.endswith("set the same layers, width, heads, feed_forward and max_tokens")


# --- settings


def test_the_hash_depends_on_how_the_other_was_trained_and_not_on_its_name(toy):
    ours = toy.experiment(**NEXT)
    longer = toy.experiment(**changed(NEXT, {"systems": {"ems": {"train": {"steps": 9}}}}))
    assert stage_hash(ours, "train", system="next") != stage_hash(longer, "train", system="next")
    other = {"ems": {}, "base": {}, "next": {"train": {"start": "base"}}}
    renamed = toy.experiment(**{**NEXT, "systems": other})
    assert stage_hash(ours, "train", system="next") == stage_hash(renamed, "train", system="next")
    settings = stage_settings(ours, "train", system="next")
    assert settings["start"] == stage_hash(ours, "train", system="ems")
    assert "start" not in stage_settings(ours, "train", system="ems")


def test_iterations_make_a_chain_that_starts_where_the_system_does(toy):
    ours = toy.experiment(**CHAIN)
    starts = {name: system.train.start for name, system in ours.systems.items() if system.trained}
    assert starts == {"ems": None, "next-1": "ems", "next-2": "next-1", "next-3": "next-2"}
    hashes = [stage_hash(ours, "train", system=name) for name in starts]
    assert len(set(hashes)) == 4
    more = toy.experiment(**changed(CHAIN, {"systems": {"next": {"iterations": 5}}}))
    assert [stage_hash(more, "train", system=name) for name in starts] == hashes


def test_a_start_that_is_an_entry_with_each_is_that_of_the_same_vocabulary(toy):
    names = {"de": {"languages": ["en", "de"]}, "fr": {"languages": ["en", "fr"]}}
    systems = {
        "base": {"each": ["de", "fr"]},
        "next": {"each": ["de", "fr"], "train": {"start": "base"}, "iterations": 2},
    }
    expanded = toy.experiment(vocabularies=names, systems={"ems": {}, **systems}).systems
    assert expanded["next-fr-1"].train.start == "base-fr"
    assert expanded["next-de-2"].train.start == "next-de-1"


MISTAKES = {
    "itself": ({"ems": {"train": {"start": "ems"}}}, "ems is no other system that is trained here"),
    "unknown": ({"ems": {"train": {"start": "x"}}}, "x is no other system that is trained here"),
    "a baseline": (
        {"ems": {"train": {"start": "x"}}, "x": {"kind": "char-ngram"}},
        "x is no other system that is trained here; there: none",
    ),
    "a circle": (
        {"ems": {"train": {"start": "b"}}, "b": {"train": {"start": "ems"}}},
        "systems.ems.train.start: a circle, ems from b from ems; change one of them",
    ),
    "other sizes": (
        {"ems": {}, "b": {"model": {"layers": 3}, "train": {"start": "ems"}}},
        "systems.b.train.start: ems has model.layers 1, but this system 3; say the same",
    ),
    "fewer languages": (
        {"ems": {"languages": ["en", "de"]}, "b": {"train": {"start": "ems"}}},
        "systems.b.train.start: ems does not know fr; leave it out",
    ),
    "iterations of a name": (
        {"ems": {"train": {"start": "b"}, "iterations": 2}, "b": {}, "ems-1": {}},
        "systems.ems.iterations: makes ems-1, which is another system's name",
    ),
    "iterations of a baseline": (
        {"ems": {}, "x": {"kind": "char-ngram", "iterations": 2}},
        "systems.x.iterations: x is not trained here; leave it out",
    ),
    "coherence without a start": (
        {"ems": {"objectives": {"xtr": {"weight": 0}, "coherence": {"weight": 1}}}},
        "systems.ems: train.start: this key is missing",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_cannot_be_is_an_error_of_one_line(name, toy):
    systems, expected = MISTAKES[name]
    if "coherence" in name:
        systems["ems"]["objectives"]["contrastive"] = {"weight": 0, "width": 8}
    assert expected in one_line(lambda: toy.experiment(systems=systems))
