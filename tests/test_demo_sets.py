"""Laws of the demo's evaluation sets: what training has seen, and the experiment."""

import re
from itertools import combinations

import pytest
from made.experiments import shipped
from made.text import law

from ems.bench.task import Task
from ems.config.experiment import UNSEEN
from ems.config.plugins import benchmark, benchmarks, has, module, sets
from ems.corpora.demo.grammar import BENCHMARK_ONLY, LANGUAGES
from ems.corpora.evalsets.formats import parts
from ems.corpora.evalsets.sets import data_files, read_sides
from ems.corpora.moses import read_pairs
from ems.workflow.sources import missing_evalsets

PLACES = {  # set -> its folder below the mirror's
    name: benchmark(name).demo or name for name in sets() if has(name, "demo")
} | {"tatoeba": "tatoeba"}
DRAWN = {name for name in sets() if benchmark(name).drawn}
root = pytest.fixture(scope="module", name="root")(lambda demo_mirror: demo_mirror)


@pytest.fixture(scope="module")
def experiment():
    return shipped("demo")


# --- what training has seen


@pytest.fixture(scope="module")
def trained(root):
    """The keys of every sentence of training and validation."""
    keys = set()
    for path in sorted((root / "opus").rglob("*.zip")):
        corpus, pair = path.parents[2].name, path.name.removesuffix(".txt.zip")
        for sides in read_pairs(path, corpus, pair):
            keys.update(map(law, sides))
    return keys


@pytest.fixture(scope="module")
def evaluated(root, experiment):
    """The keys of what decontamination takes of each set."""
    return {
        name: {
            law(text)
            for code in evalset.languages
            for side in read_sides(experiment, name, root / PLACES[name], code)
            for text in side
        }
        for name, evalset in experiment.evalsets.items()
        if name not in DRAWN
    }


def test_no_sentence_of_a_set_is_trained_on_or_in_another_but_by_intention(trained, evaluated):
    assert set(evaluated) == set(sets()) & set(PLACES) - DRAWN
    leaked = {name: keys & trained for name, keys in evaluated.items() if keys & trained}
    assert set(leaked) == {"tatoeba", "flores200"}
    assert leaked["flores200"] < leaked["tatoeba"]
    both = combinations(sorted(evaluated), 2)
    shared = {pair for pair in both if evaluated[pair[0]] & evaluated[pair[1]]}
    assert shared == {("flores200", "tatoeba"), ("mldoc", "rcv2")}


def test_nothing_that_only_trains_a_classifier_is_trained_on_or_scored(root, trained, evaluated):
    xnli, marc, counterfactual, paracrawl = (
        module(name, "data") for name in ("xnli", "marc", "counterfactual", "paracrawl")
    )
    pairs = xnli.read_train(root / "xnli")
    texts = [text for pair in pairs for text in (pair.premise, pair.hypothesis)]
    for code in ("de", "en", "es", "fr", "ja", "zh"):
        texts += parts(marc.read_split(root / "marc", code, "train"))
    for code in ("EN", "DE", "JP"):
        texts += parts(counterfactual.read_split(root / "counterfactual", code, "train"))
    for code in ("de", "fr", "es"):
        for pair in paracrawl.read_language(root / "paracrawl", code, "ParaCrawl"):
            texts += pair
    keys = set(map(law, texts))
    assert not keys & trained
    assert not any(keys & held_out for held_out in evaluated.values())


# --- the experiment


def test_every_set_of_the_demo_is_embedded_and_its_files_are_there(root, experiment):
    assert set(experiment.evalsets) == set(sets()) & set(PLACES)
    assert missing_evalsets(experiment) == []
    for name, evalset in experiment.evalsets.items():
        assert evalset.embedded == (name != "tatoeba")
        unseen = BENCHMARK_ONLY if name == "tatoeba" else ()
        assert set(evalset.languages.values()) - set(LANGUAGES) == set(unseen)
        files = data_files(experiment, name, root / PLACES[name])
        assert files
        assert all(path.exists() for path in files), name
    assert sum(path.stat().st_size for path in root.rglob("*.xml")) < 3_000_000  # news are small


def test_the_demo_has_every_benchmark_and_a_language_that_it_does_not_train_on(experiment):
    assert set(experiment.benchmarks) == set(benchmarks())
    assert experiment.spoken("tatoeba")["ita"] == UNSEEN
    assert all(experiment.scores_unseen("tatoeba", system) for system in experiment.systems)
    assert all("it" not in pair for corpus in experiment.corpora for pair in corpus.pairs)
    assert experiment.segmenters[UNSEEN] == experiment.segmenters["es"] == "sacremoses"


def test_the_full_demo_has_the_same_sets_and_benchmarks(experiment):
    full = shipped("demo-full")
    for key in ("evalsets", "decontaminate", "benchmarks", "probes"):
        assert getattr(full, key) == getattr(experiment, key)


def test_a_score_file_names_the_sum_of_the_files_themselves(root, experiment):
    header = Task(None, experiment, "ems", "tatoeba", {"tatoeba": root / "tatoeba"}).header()
    assert header["version"] == "demo-v1"
    assert len(data_files(experiment, "tatoeba", root / "tatoeba")) == 16
    assert len(header["data_sha256"]) == 16


def test_the_workflow_makes_the_mirror_and_fetches_nothing_that_is_used_in_place(fresh):
    """`tiny` becomes the demo: thirteen sets in the mirror, and Tatoeba, fetched from it."""
    keys = "results/demo/text/evalkeys.tsv"
    words = ("-n", "--printshellcmds", "--config", "experiment=demo", "--", keys, "data")
    output = fresh.snakemake(*words)
    assert output.count("rule demo_mirror:") == 1
    fetched = re.findall(r"ems fetch-evalset --evalset (\w+) --source=(\w+)", output)
    assert set(fetched) == {("tatoeba", "embedded")}
    for place in ("flores200=data/embedded/flores200", "mldoc=data/embedded/reuters"):
        assert place in output
    assert "ParaCrawl" not in output
    assert "NTREX" not in output
