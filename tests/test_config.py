"""Laws of the settings: a mistake is one line, nothing of one experiment leaks into another."""

import copy
import subprocess
import sys

import pytest
from conftest import ROOT
from made.experiments import GONE, REAL, SHIPPED, SITE, Settings, edited, shipped

from ems.base.errors import EmsError
from ems.base.schema import merge, plain
from ems.config.load import load_site
from ems.corpora.catalogue import check_corpora


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, REAL)


# --- the experiments that are here


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_experiment_loads_and_knows_its_corpora(name):
    assert load_site(ROOT / "config.yaml").experiment in SHIPPED
    experiment = shipped(name)
    check_corpora(experiment)
    assert experiment.name == name
    assert experiment.systems
    assert all(corpus.pairs for _, corpus in experiment.all_corpora())


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_of_one_experiment_leaks_into_another(name):
    program = (
        "import sys; from pathlib import Path\n"
        "from ems.config.load import load_experiment, load_site\n"
        "site = load_site(Path('config.yaml'), {'experiment': sys.argv[1]})\n"
        "print(load_experiment(sys.argv[1], site))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, name], cwd=ROOT, capture_output=True, text=True, check=True
    )
    read = shipped.__wrapped__  # not the one that the tests share
    for other in SHIPPED:  # in this process the others come first
        spoilt = read(other)
        spoilt.systems.clear()
        spoilt.decontaminate.against.append("spoilt")
        spoilt.segmenters["en"] = "spoilt"
    assert str(read(name)) == done.stdout.strip()


# --- mistakes


def test_an_unknown_experiment_is_told_with_those_that_are_here(project):
    project.write(REAL, "yours")
    message = project.error(experiment="nope")
    assert "experiment: " in message
    assert "nope.yaml does not exist; the experiments here: mine, yours" in message


@pytest.mark.parametrize(
    ("path", "new", "line"),
    [
        ("experimnt", "x", "config.yaml: experimnt: unknown key (did you mean experiment?)"),
        ("sources.opsu", "x", "config.yaml: sources.opsu: unknown key"),
        ("gpus", -1, "config.yaml: gpus: -1 is less than the minimum of 0"),
        ("data", GONE, "config.yaml: data: this key is missing"),
    ],
)
def test_a_mistake_in_the_site_settings_is_one_line_too(project, path, new, line):
    project.site(edited(SITE, path, new))
    assert line in project.error()


def test_a_file_that_is_no_mapping_is_one_line_with_its_name(project):
    assert "/configs/mine.yaml: expected `key: value` lines, found list" in project.error("- a\n")


def test_a_segmenter_that_cannot_run_here_is_told_before_any_job(project, monkeypatch, tmp_path):
    from ems.text.segmenters.base import check_available

    check_available.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    message = project.error(edited(REAL, "segmenters.ja", "jumanpp"))
    assert "segmenter jumanpp" in message


# --- what is made of the settings


def test_a_system_is_the_base_plus_its_overrides(project):
    value = edited(REAL, "systems.b", {"model": {"layers": 1}, "train": {"steps": 0}})
    systems = project.load(value).systems
    a, b = systems["a"], systems["b"]
    assert a.model.layers == 6
    assert plain(b.model) == {**plain(a.model), "layers": 1}
    assert plain(b.train) == {**plain(a.train), "steps": 0}
    assert b.objectives == a.objectives
    assert (a.kind, systems["ngram"].kind) == ("encoder", "char-ngram")


def test_the_tables_show_all_systems_or_those_that_are_named_in_their_order(project):
    assert project.load().shown == ["a", "b", "ngram"]
    assert project.load(edited(REAL, "tables.systems", ["ngram", "a"])).shown == ["ngram", "a"]


def test_the_systems_of_all_tables_are_those_shown_of_the_ablation_and_of_the_studies(project):
    base = edited(REAL, "tables.systems", ["ngram"])
    assert project.load(base).tabled == ["ngram"]
    study = {"caption": "x", "columns": {"tatoeba": ["en-de"]}, "rows": {"one": "b"}}
    both = edited(base, "tables.ablation", ["a", "ngram"])
    assert project.load(edited(both, "tables.studies", {"x": study})).tabled == ["ngram", "a", "b"]


def test_the_ablation_table_has_the_systems_of_the_others_unless_it_names_its_own(project):
    every = project.load(edited(REAL, "tables.systems", ["ngram", "a"]))
    assert every.ablated == every.shown
    assert every.learning(every.ablated) == every.learning(["a", "a"]) == ["a"]
    own = project.load(edited(REAL, "tables.ablation", ["b", "a"]))
    assert own.ablated == ["b", "a"]
    assert own.shown == every.listed


def test_merging_leaves_its_inputs_as_they_were():
    base = {"a": {"x": 1, "y": {"z": 2}}, "b": [1]}
    over = {"a": {"y": {"w": 3}}, "b": [2], "c": {"d": 4}}
    before = copy.deepcopy((base, over))
    assert merge(base, over) == {"a": {"x": 1, "y": {"z": 2, "w": 3}}, "b": [2], "c": {"d": 4}}
    assert (base, over) == before


def test_a_language_of_ones_own_needs_no_entry_in_the_table(project):
    own = {"code": "xq", "tatoeba_v1": "xqq", "script": "Latin"}
    experiment = project.load(edited(REAL, "languages", ["en", "de", own]))
    assert experiment.languages["xq"].tatoeba_v1 == "xqq"
    assert experiment.corpora[0].pairs == ("de-en", "en-xq")
    assert experiment.evalsets["tatoeba"].languages == {"deu": "de", "xqq": "xq"}
    assert experiment.segmenters["xq"] == "none"
    bare = project.load(edited(REAL, "languages", ["en", "de", {"code": "xq"}]))
    assert bare.evalsets["tatoeba"].languages == {"deu": "de"}


def test_a_corpus_of_ones_own_needs_no_entry_in_the_catalogue(project):
    own = {"name": "Mine", "version": "2024", "source": "some/where", "languages": ["ja"]}
    experiment = project.load(edited(REAL, "corpora.0", own))
    corpus = experiment.corpora[0]
    assert (corpus.source, corpus.pairs, corpus.custom) == ("some/where", ("en-ja",), True)
    assert experiment.validation[0].source == "o"  # the site's


def test_an_experiments_sources_win_over_the_sites(project):
    experiment = project.load(edited(REAL, "sources", {"opus": "mine"}))
    assert [experiment.sources[name] for name in ("opus", "tatoeba")] == ["mine", "t"]
    assert {corpus.source for _, corpus in experiment.all_corpora()} == {"mine"}


def test_an_unknown_corpus_of_an_experiment_is_an_error(project):
    experiment = project.load()
    assert experiment.corpus("NTREX", "v1") == ("validation", *experiment.validation)
    with pytest.raises(EmsError, match="experiment mine has no corpus A/v1"):
        experiment.corpus("A", "v1")
