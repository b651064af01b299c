"""Laws of systems that differ from the base: by languages, by `each`, or as a point of a sweep.

What `each` and overrides make is in tests/golden/experiments/narrowed.txt.
"""

import json
import re
from contextlib import chdir

import numpy as np
import pytest
from made import experiments, golden
from made.corpora import write_tatoeba
from made.experiments import GONE, MINIMAL, SHIPPED, Settings, differing, edited, shipped
from made.shards import contents, in_order, unpacked
from made.tables import write_lines
from safetensors.numpy import load_file

from ems.base.errors import EmsError
from ems.bench.evaluate import Task, evaluate
from ems.bench.scores import read_score_file
from ems.commands.cli import main
from ems.config.model import EncoderSettings, NgramSettings
from ems.config.objectives import Objectives
from ems.config.stages import stage_hash
from ems.config.sweep import written
from ems.config.train import TrainSettings
from ems.model.char_ngrams import NgramEncoder
from ems.shards.index import shards_in, write_index
from ems.shards.reader import PairStore
from ems.tables.models import write_sweep_table
from ems.tables.printed import read_rows


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, experiments.NARROWED)


def test_a_system_of_some_languages_scores_no_language_as_unseen(project):
    experiment = project.load(edited(project.base, "evalsets.tatoeba.languages", "all"))
    assert experiment.of_system("pair-ja").spoken("tatoeba") == {"jpn": "ja"}
    assert len(experiment.of_system("all").spoken("tatoeba")) == 112
    assert experiment.scores_unseen("tatoeba", "all")
    assert not experiment.scores_unseen("tatoeba", "pair-ja")


# --- a share of the corpus


def store(toy, *share):
    return PairStore(toy.shards("training"), ["en", "de", "fr"], 20, *share)


@pytest.mark.parametrize("share", [0.125, 0.3, 0.999])
def test_a_share_of_the_corpus_is_pairs_at_even_distances(toy, share):
    whole, part = store(toy), store(toy, share)
    assert part.sizes.tolist() == [int(size * share) for size in whole.sizes.tolist()]
    expected = []
    for group, size in enumerate(whole.sizes.tolist()):
        chosen = [int(at / share) for at in range(int(size * share))]
        assert max(np.diff(chosen)) - min(np.diff(chosen)) <= 1
        expected += unpacked(whole.assemble(np.full(len(chosen), group), np.array(chosen)))
    assert [pair for batch in in_order(part, 50) for pair in unpacked(batch)] == expected
    drawn = {pair for step in range(40) for pair in unpacked(part.draw(1, step, 64, 0.5))}
    assert drawn == set(expected)


def test_all_of_the_corpus_is_the_corpus_and_a_little_of_it_is_one_pair(toy):
    whole, same = store(toy), store(toy, 1.0)
    assert whole.sizes.tolist() == same.sizes.tolist() == [160, 60]
    for one, other in zip(in_order(whole, 64), in_order(same, 64), strict=True):
        assert unpacked(one) == unpacked(other)
    assert store(toy, 1e-9).sizes.tolist() == [1, 1]


# --- training and scores


def run_train(toy, folder, index):
    """`ems train` of the system `fr`, as the workflow calls it: the model folder and the log."""
    words = ["train", "--experiment", "mine", "--system", "fr", "--shards", index]
    words += ["--vocabulary", toy.vocabulary, "--out", folder / "model"]
    words += ["--state", folder / "state", "--log", folder / "log"]
    with chdir(toy.folder):
        assert main(list(map(str, words))) == 0
    return folder / "model", (folder / "log").read_text()


@pytest.mark.slow
def test_a_system_of_some_languages_is_trained_on_their_pairs_with_heads_for_them(toy, tmp_path):
    share = {"corpus_share": 0.25, "steps": 4}
    systems = {"all": {}, "fr": {"languages": ["fr", "en"], "train": share}}
    toy.settings.write(toy.settings.base | {"systems": systems})
    folder, log = run_train(toy, tmp_path, toy.index())
    assert ", 15 pairs," in log  # a quarter of the 60 of en-fr; de-en has 160 more
    description = json.loads((folder / "model.json").read_text())
    assert description["languages"] == description["training"]["languages"] == ["fr", "en"]
    assert set(description["segmenters"]) == {"fr", "en", "und"}
    rows = [value.shape[0] for value in load_file(folder / "heads.safetensors").values()]
    assert 2 in rows  # the language embedding
    assert 3 not in rows


@pytest.mark.slow
def test_a_narrowed_system_has_the_bytes_of_an_experiment_of_its_languages_alone(toy, tmp_path):
    own = {"train": {"steps": 6}}
    systems = {"fr": {"languages": ["en", "fr"], **own}, "all": {}}
    toy.settings.write(toy.settings.base | {"systems": systems})
    narrowed, _ = run_train(toy, tmp_path / "narrowed", toy.index())
    toy.settings.write(toy.settings.base | {"languages": ["en", "fr"], "systems": {"fr": own}})
    parts = {"train": "training", "validation": "validation"}
    shards = {role: shards_in(toy.folder / part / "en-fr") for role, part in parts.items()}
    write_index(shards, toy.folder / "fr.json")
    alone, _ = run_train(toy, tmp_path / "alone", toy.folder / "fr.json")
    for name in ("model.safetensors", "heads.safetensors", "losses.jsonl"):
        assert contents(narrowed)[name] == contents(alone)[name]


def test_a_system_is_scored_on_its_languages_and_says_that_the_data_are_the_same(project, tmp_path):
    experiment, scores = project.load(), {}
    for code in ("deu", "jpn"):
        write_tatoeba(tmp_path, code, [(f"{code} {at}", f"{code} {at}") for at in range(8)])
    for name in ("all", "pair-ja"):
        encoder, out = NgramEncoder(NgramSettings(buckets=64)), tmp_path / f"{name}.json"
        folders = {"tatoeba": tmp_path / "tatoeba"}
        evaluate(Task(encoder, experiment, name, "tatoeba", folders), out)
        scores[name] = read_score_file(out)
    assert set(scores["all"].labelled()) == {"deu", "jpn"}
    assert set(scores["pair-ja"].labelled()) == {"jpn"}
    assert scores["all"].data_sha256 == scores["pair-ja"].data_sha256


# --- a sweep


@pytest.fixture
def sweep(tmp_path):
    return Settings(tmp_path, experiments.SWEPT)


def points(experiment):
    return {point.system: experiment.systems[point.system] for point in experiment.sweep}


def test_a_point_differs_from_the_chosen_one_in_its_own_setting_alone(sweep):
    experiment = sweep.load()
    made = points(experiment)
    centre = made["ems.chosen"]
    assert differing(centre, experiment.systems["ems"]) == {"train.steps"}
    assert centre.train.steps == 7
    for point in experiment.sweep:
        expected = set() if point.chosen else {point.axis}
        assert differing(made[point.system], centre) == expected, point


def test_the_chosen_point_is_one_system_on_every_axis_and_no_point_is_in_the_tables(sweep):
    experiment = sweep.load()
    assert [point.system for point in experiment.sweep if point.chosen] == ["ems.chosen"] * 3
    temperatures = ("ems.contrastive.temperature-0.05", "ems.contrastive.temperature-1")
    names = ["ems.layers-2", "ems.chosen", *temperatures, "ems.weight_decay-0"]
    assert list(points(experiment)) == names
    assert experiment.shown == ["ems", "ngram"]
    assert sweep.load(MINIMAL).sweep == ()
    same = sweep.load(edited(sweep.base, "sweep.train", GONE))  # without changes for all points
    assert {point.system for point in same.sweep if point.chosen} == {"ems"}


def test_another_axis_or_value_leaves_the_existing_systems_unchanged(sweep):
    def trained(value):
        experiment = sweep.load(value)
        return {n: stage_hash(experiment, "train", system=n) for n in points(experiment)}

    before = trained(sweep.base)
    axes = {"model.dropout": [0, 0.1], **experiments.AXES, "model.layers": [1, 2, 6]}
    after = trained(edited(sweep.base, "sweep.axes", axes))
    assert set(after) - set(before) == {"ems.dropout-0", "ems.layers-1"}
    assert {name: after[name] for name in before} == before


def test_a_value_is_written_in_plain_digits():
    values = [0.00001, 0.0, 1.0, 20000, 3e-4, True, "cosine", [64, 32], 1e16]
    texts = "0.00001 0 1 20000 0.0003 true cosine 64-32 10000000000000000"
    assert " ".join(map(written, values)) == texts


def test_every_system_of_every_shipped_sweep_is_a_good_name_of_a_folder():
    sweeps = [shipped(name).sweep for name in SHIPPED]
    for one in sweeps:
        assert {point.axis for point in one} == {point.axis for point in one if point.chosen}
    names = {point.system for one in sweeps for point in one}
    assert len(names) > 20
    assert all(re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]*", name) for name in names)


def test_no_two_sections_of_a_system_have_a_key_in_common():
    """So that a name without its section, `ems.layers-2`, can mean one setting only."""
    keys = [key for s in (EncoderSettings, Objectives, TrainSettings) for key in s.model_fields]
    assert len(set(keys)) == len(keys) > 10


def test_ems62_searches_what_table_ii_of_the_paper_lists_around_what_it_chose():
    values, printed = {}, {}
    for point in shipped("ems62").sweep:
        values.setdefault(point.axis, {})[point.value] = point.chosen
    for row in read_rows("ems-v2-table02-grid"):
        printed.setdefault(row["setting"], {})[float(row["value"])] = row["chosen"] == "1"
    assert values == printed
    assert len({point.system for point in shipped("ems62").sweep}) == 20


# --- its table


def loss_log(path, total, p1):
    """Two validations; only the second one counts."""
    rows = [{"part": "validation", "step": 0, "total": total / 100, "p1": 100.0}]
    rows += [{"part": "train", "step": 7, "total": 0.001}]
    rows += [{"part": "validation", "step": 7, "total": total, "p1": p1}]
    for row in rows:
        row |= {"pairs": 8 * row["step"], "xtr": row["total"] / 2, "contrastive": row["total"] / 2}
    return write_lines(path, rows)


VALUES = {  # the best loss and P@1 of each axis are bold, ties too; P@1 alone for the temperature
    "ems.layers-2": (3.0, 49.0),
    "ems.weight_decay-0": (4.0004, 50.04),
    "ems.contrastive.temperature-1": (0.5, 41.26),
}
TABLES = {  # name -> the axes, the base's number of layers
    "sweep": (experiments.AXES, 6),
    "sweep-layers": ({"model.layers": [2, 6]}, 2),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_table_of_a_sweep(sweep, tmp_path, name):
    axes, layers = TABLES[name]
    value = edited(edited(sweep.base, "sweep.axes", axes), "model.layers", layers)
    chosen = sweep.load(value).sweep
    losses = {}
    for system in {point.system for point in chosen}:
        values = VALUES.get(system, (4.0, 50.0))
        losses[system] = loss_log(tmp_path / system / "losses.jsonl", *values)
    write_sweep_table(chosen, losses, tmp_path / "sweep.tex")
    for suffix in ("tex", "csv"):
        golden.check(f"tables/{name}.{suffix}", (tmp_path / f"sweep.{suffix}").read_text())


def test_a_point_without_losses_or_without_validation_is_an_error(sweep, tmp_path):
    chosen = sweep.load().sweep
    with pytest.raises(EmsError, match=r"has ems\.layers-2, but its losses\.jsonl is missing"):
        write_sweep_table(chosen, {}, tmp_path / "t.tex")
    row = {"part": "train", "step": 1, "pairs": 8, "xtr": 1.0, "total": 1.0}
    path = write_lines(tmp_path / "losses.jsonl", [row])
    with pytest.raises(EmsError, match="no row of validation"):
        write_sweep_table(chosen, {point.system: path for point in chosen}, tmp_path / "t.tex")
    assert not list(tmp_path.glob("t.*"))
