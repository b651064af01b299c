"""Laws of systems with some of the languages: their settings, hashes, data, models and scores."""

import json
import subprocess
import sys

import numpy as np
import pytest
from made.corpora import write_tatoeba
from made.experiments import REAL, Settings, changed_jobs, edited
from made.shards import contents, in_order, unpacked
from safetensors.numpy import load_file

from ems.bench.evaluate import evaluate
from ems.bench.scores import read_score_file
from ems.config.model import NgramSettings
from ems.model.char_ngrams import NgramEncoder
from ems.shards.index import write_index
from ems.shards.reader import PairStore

VOCABULARIES = {"de": {"languages": ["en", "de"]}, "ja": {"languages": ["ja", "en"], "size": 500}}
OWN = REAL | {
    "vocabularies": VOCABULARIES,
    "systems": {
        "all": {},
        "some": {"languages": ["en", "ja"]},
        "one": {"vocabulary": "de", "train": {"steps": 3}},
        "pair": {"model": {"layers": 1}, "each": ["de", "ja"]},
        "own": {"each": {"de": {}, "ja": {"model": {"layers": 3}, "train": {"steps": 7}}}},
        "ngram": {"kind": "char-ngram"},
    },
}


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, OWN)


# --- settings


def test_an_entry_with_each_is_a_system_for_each_vocabulary_with_its_overrides(project):
    systems = project.load().systems
    assert list(systems) == [
        *("all", "some", "one", "pair-de", "pair-ja", "own-de", "own-ja", "ngram")
    ]
    assert [systems[name].vocabulary for name in ("pair-de", "pair-ja")] == ["de", "ja"]
    layers = {name: system.model.layers for name, system in systems.items()}
    assert [layers[name] for name in ("all", "pair-de", "pair-ja", "own-ja")] == [6, 1, 1, 3]
    steps = [systems[name].train.steps for name in ("pair-ja", "own-de", "own-ja", "one")]
    assert steps == [10, 10, 7, 3]


def test_a_system_has_the_languages_of_its_vocabulary_or_those_it_names_in_that_order(project):
    systems = project.load().systems
    languages = {name: list(system.languages) for name, system in systems.items()}
    assert languages["all"] == languages["ngram"] == ["en", "de", "ja"]
    assert languages["some"] == ["en", "ja"]
    assert languages["one"] == languages["pair-de"] == ["en", "de"]
    assert languages["pair-ja"] == ["ja", "en"]
    assert list(project.load().of_system("pair-ja").languages) == ["ja", "en"]


def test_a_vocabulary_is_the_base_and_its_overrides(project):
    experiment = project.load()
    sizes = {name: own.settings.size for name, own in experiment.vocabularies.items()}
    assert sizes == {"shared": 300, "de": 300, "ja": 500}
    own = experiment.of_vocabulary("ja")
    assert (own.vocabulary.size, list(own.languages)) == (500, ["ja", "en"])
    whole = experiment.of_vocabulary("shared")
    assert (whole.vocabulary, whole.languages) == (experiment.vocabulary, experiment.languages)


def test_the_shards_of_a_vocabulary_are_the_pairs_of_its_languages(project):
    experiment = project.load()
    shards = {
        name: [pair for _, pair in experiment.pairs_of("train", name)]
        for name in experiment.vocabularies
    }
    assert shards == {"shared": ["de-en", "en-ja"], "de": ["de-en"], "ja": ["en-ja"]}
    assert [pair for _, pair in experiment.pairs_of("validation", "de")] == ["de-en"]


def test_tables_name_an_entry_with_each_for_all_its_systems(project):
    shown = project.load(edited(OWN, "tables.systems", ["own", "all", "pair-ja"])).shown
    assert shown == ["own-de", "own-ja", "all", "pair-ja"]


def test_a_system_of_some_languages_scores_no_language_as_unseen(project):
    experiment = project.load(edited(OWN, "evalsets.tatoeba.languages", "all"))
    assert experiment.of_system("pair-ja").spoken("tatoeba") == {"jpn": "ja"}
    assert len(experiment.of_system("all").spoken("tatoeba")) == 112
    assert experiment.scores_unseen("tatoeba", "all")
    assert not experiment.scores_unseen("tatoeba", "pair-ja")


# --- hashes

OF_DE, OF_JA = (
    {f"train {name}-{code}" for name in ("pair", "own")}
    | {f"bench {name}-{code} tatoeba" for name in ("pair", "own")}
    for code in ("de", "ja")
)
OF_PAIR = {name for name in OF_DE | OF_JA if " pair-" in name}
EDITS = [
    ("vocabularies.de.size", 400, {"vocabulary de"}),
    ("vocabularies.ja.temperature", 2, {"vocabulary ja"}),
    ("vocabulary.size", 200, {"vocabulary shared", "vocabulary de"}),  # ja says its own
    ("vocabularies.ja.languages", ["en", "ja"], {"vocabulary ja"} | OF_JA),
    # of a language more only they learn who have all; n-grams are counted in its text, too
    (
        "languages",
        ["en", "de", "ja", "fr"],
        {"vocabulary shared", "train all", "bench all tatoeba", "bench ngram tatoeba"},
    ),
    ("systems.pair.train", {"steps": 2}, OF_PAIR),
    ("vocabularies.fr", {"languages": ["en", "de"]}, set()),
    ("systems.one.languages", ["en", "de"], set()),
]


@pytest.mark.parametrize(("path", "new", "changed"), EDITS)
def test_an_edit_reruns_the_vocabulary_and_the_systems_that_it_is_about(
    project, path, new, changed
):
    base = edited(OWN, "evalsets.tatoeba.languages", ["de", "ja"])
    assert changed_jobs(project, base, edited(base, path, new)) == changed


# --- a share of the corpus


@pytest.mark.parametrize("share", [0.125, 0.25, 0.3, 0.5, 0.999])
def test_a_share_of_the_corpus_is_pairs_at_even_distances(toy, share):
    whole = PairStore(toy.shards("training"), ["en", "de", "fr"], 20)
    part = PairStore(toy.shards("training"), ["en", "de", "fr"], 20, share)
    assert part.sizes.tolist() == [int(size * share) for size in whole.sizes.tolist()]
    expected = []
    for group, size in enumerate(whole.sizes.tolist()):
        chosen = [int(at / share) for at in range(int(size * share))]
        assert len(set(chosen)) == len(chosen)
        assert max(np.diff(chosen)) - min(np.diff(chosen)) <= 1
        batch = whole.assemble(np.full(len(chosen), group), np.array(chosen))
        expected += unpacked(batch)
    assert [pair for batch in in_order(part, 50) for pair in unpacked(batch)] == expected
    drawn = {pair for step in range(40) for pair in unpacked(part.draw(1, step, 64, 0.5))}
    assert drawn == set(expected)


def test_all_of_the_corpus_is_the_corpus_and_a_little_of_it_is_one_pair(toy):
    folders = toy.shards("training")
    whole, same = (PairStore(folders, ["en", "de", "fr"], 20, *rest) for rest in ((), (1.0,)))
    assert whole.sizes.tolist() == same.sizes.tolist() == [160, 60]
    for one, other in zip(in_order(whole, 64), in_order(same, 64), strict=True):
        assert unpacked(one) == unpacked(other)
    assert PairStore(folders, ["en", "de", "fr"], 20, 1e-9).sizes.tolist() == [1, 1]


# --- training


def run_train(toy, folder, system):
    """`ems train`, as the workflow calls it; the model folder."""
    command = [sys.executable, "-m", "ems.commands.cli", "train", "--experiment", "mine"]
    command += ["--system", system, "--shards", toy.index(), "--vocabulary", toy.vocabulary]
    command += ["--out", folder / "model", "--state", folder / "state", "--log", folder / "log"]
    done = subprocess.run(command, cwd=toy.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "model", (folder / "log").read_text()


def test_a_system_of_some_languages_is_trained_on_their_pairs_with_heads_for_them(toy, tmp_path):
    share = {"corpus_share": 0.25, "steps": 4}
    systems = {"all": {}, "fr": {"languages": ["fr", "en"], "train": share}}
    toy.settings.write(toy.settings.base | {"systems": systems})
    folder, log = run_train(toy, tmp_path, "fr")
    assert ", 15 pairs," in log  # a quarter of the 60 of en-fr; de-en has 160 more
    description = json.loads((folder / "model.json").read_text())
    assert description["languages"] == description["training"]["languages"] == ["fr", "en"]
    assert set(description["segmenters"]) == {"fr", "en", "und"}
    rows = [value.shape[0] for value in load_file(folder / "heads.safetensors").values()]
    assert 2 in rows  # the language embedding
    assert 3 not in rows


def test_narrowing_by_the_settings_equals_an_experiment_of_those_languages_alone(toy, tmp_path):
    """The same shards, vocabulary and seed: bytes of both models are the same."""
    own = {"train": {"steps": 6}}
    systems = {"fr": {"languages": ["en", "fr"], **own}, "all": {}}
    toy.settings.write(toy.settings.base | {"systems": systems})
    narrowed, _ = run_train(toy, tmp_path / "narrowed", "fr")
    shards, held_out = (
        [shard for shard in toy.shards(part) if "fr" in str(shard)]
        for part in ("training", "validation")
    )
    toy.settings.write(toy.settings.base | {"languages": ["en", "fr"], "systems": {"fr": own}})
    write_index({"train": shards, "validation": held_out}, toy.folder / "fr.json")
    toy.index = lambda: toy.folder / "fr.json"
    alone, _ = run_train(toy, tmp_path / "alone", "fr")
    del toy.index
    for name in ("model.safetensors", "heads.safetensors", "losses.jsonl"):
        assert contents(narrowed)[name] == contents(alone)[name]


# --- scores


def test_a_system_is_scored_on_its_languages_and_says_that_the_data_are_the_same(tmp_path):
    project = Settings(tmp_path, OWN)
    experiment = project.load()
    for code in ("deu", "jpn"):
        lines = [(f"{code} {at}", f"{code} {at}") for at in range(8)]
        write_tatoeba(tmp_path, code, lines)
    scores = {}
    for name in ("all", "pair-ja"):
        names, out = {"system": name, "benchmark": "tatoeba"}, tmp_path / f"{name}.json"
        folders = {"tatoeba": tmp_path / "tatoeba"}
        evaluate(NgramEncoder(NgramSettings(buckets=64)), experiment, names, folders, out)
        scores[name] = read_score_file(out)
    assert set(scores["all"].labelled()) == {"deu", "jpn"}
    assert set(scores["pair-ja"].labelled()) == {"jpn"}
    assert scores["all"].data_sha256 == scores["pair-ja"].data_sha256
