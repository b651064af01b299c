"""Laws of the settings: a mistake is one line, nothing of one experiment leaks into another."""

import copy
import subprocess
import sys

import pytest
from conftest import ROOT
from experiments_made import GONE, REAL, SITE, Settings, edited, shipped

from ems.config import load_site
from ems.config.yaml12 import load_yaml
from ems.corpora.catalogue import check_corpora
from ems.errors import EmsError
from ems.settings import merge, plain

SHIPPED = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, REAL)


# --- the experiments that are here


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_experiment_loads_and_knows_its_corpora(name):
    experiment = shipped(name)
    check_corpora(experiment)
    assert experiment.name == name
    assert experiment.systems
    assert all(corpus.pairs for _, corpus in experiment.all_corpora())


def test_the_site_settings_name_an_experiment_that_is_here():
    assert load_site(ROOT / "config.yaml").experiment in SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_of_one_experiment_leaks_into_another(name):
    program = (
        "import sys; from ems.config import load_experiment, load_site; from pathlib import Path\n"
        "site = load_site(Path('config.yaml'), {'experiment': sys.argv[1]})\n"
        "print(load_experiment(sys.argv[1], site))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, name], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for other in SHIPPED:  # in this process the others come first
        spoilt = shipped(other)
        spoilt.systems.clear()
        spoilt.decontaminate.against.append("spoilt")
        spoilt.segmenters["en"] = "spoilt"
    assert str(shipped(name)) == done.stdout.strip()


# --- mistakes

LANGUAGES = "allowed: af, ar, bg"
MISTAKES = [
    # a typo: the key, the right one, the allowed ones
    ("sed", 1, ["sed: unknown key (did you mean seed?)", "benchmarks, clean, corpora"]),
    ("corpora.0.max_pair", 3, ["corpora.0.max_pair", "(did you mean max_pairs?)", "languages"]),
    ("train.step", 5, ["train.step: unknown key", "did you mean steps?", "batch_pairs"]),
    (
        "evalsets.flores",
        {},
        ["evalsets.flores: unknown key", "allowed here: bucc2018, cls"],
    ),
    ("validation.nam", "x", ["validation.nam: unknown key (did you mean name?)", "version"]),
    ("sources.opsu", "x", ["sources.opsu: unknown key (did you mean opus?)", "ntrex, opus"]),
    ("systems.b.modle", {}, ["systems.b.modle: unknown key (did you mean model?)", "kind"]),
    ("systems.b.model.layer", 2, ["systems.b.model.layer", "(did you mean layers?)", "heads"]),
    (
        "systems.b.objectives.xtr.weigth",
        0,
        ["systems.b.objectives.xtr.weigth: unknown key (did you mean weight?)"],
    ),
    # a missing key
    ("seed", GONE, ["seed: this key is missing"]),
    ("systems", GONE, ["systems: this key is missing"]),
    ("validation.name", GONE, ["validation.name: this key is missing"]),
    ("train.steps", GONE, ["train.steps: this key is missing"]),
    ("vocabulary.size", GONE, ["vocabulary.size: this key is missing"]),
    # a wrong type
    ("seed", "1", ["seed: found '1', expected integer"]),
    ("seed", 1.0, ["seed: found 1.0, expected integer"]),
    ("seed", True, ["seed: found True, expected integer"]),
    ("train.learning_rate", "3e-4x", ["train.learning_rate: found '3e-4x', expected number"]),
    ("languages", "en", ["languages: found 'en', expected array"]),
    ("languages.1", False, ["languages.1: found False, expected string or object"]),  # YAML's no
    ("corpora.0", "Tatoeba", ["corpora.0: found 'Tatoeba', expected object"]),
    ("validation", "NTREX", ["validation: found 'NTREX', expected object or null"]),
    ("systems.b", None, ["systems.b: found None, expected object"]),
    # a value that is not allowed
    ("train.schedule", "cosin", ["train.schedule: found 'cosin'", "constant, linear, cosine"]),
    ("decontaminate.key", "fold", ["decontaminate.key: found 'fold'", "folded, plain"]),
    ("systems.b.kind", "encode", ["systems.b.kind: found 'encode'", "encoder, char-ngram"]),
    ("tables.printed", ["EMSS"], ["tables.printed.0: found 'EMSS'", "LaBSE-EMS-joint"]),
    ("benchmarks", ["x"], ["benchmarks.0: found 'x'", "allowed values: bucc2018, cls"]),
    ("vocabulary.size", 70_000, ["vocabulary.size: 70000", "maximum of 65535"]),
    ("train.batch_pairs", 1, ["train.batch_pairs: 1", "minimum of 2"]),
    ("systems", {}, ["systems: {}", "non-empty"]),
    ("systems.b.train", {"seed": -1}, ["systems.b.train.seed: -1", "minimum of 0"]),
    ("train.precision", "float16", ["train.precision: found 'float16'", "float32, bfloat16"]),
    ("tables.systems", [], ["tables.systems: []", "non-empty"]),
    ("tables.systems", ["a", "c"], ["tables.systems: c has no entry under systems"]),
    ("tables.ablation", ["a", "c"], ["tables.ablation: c has no entry under systems"]),
    ("tables.ablation", ["a"], ["tables.ablation: ['a']", "too short"]),
    ("clean.duplicate", "drop", ["clean.duplicate: unknown key (did you mean duplicates?)"]),
    ("clean.identical", True, ["clean.identical: found True; allowed values: keep, drop"]),
    ("clean.max_words", -1, ["clean.max_words: -1", "minimum of 0"]),
    # unknown languages, corpora, versions, segmenters
    ("languages", ["en", "xx"], ["languages: unknown language 'xx'", LANGUAGES, "zh"]),
    ("languages", ["de", "ja"], ["languages: en is missing"]),
    ("languages", ["en", "de", "de"], ["languages: de is named twice"]),
    ("languages", ["en", "de", {"code": "und"}], ["languages: und stands for all", "rename it"]),
    ("corpora.0.languages", ["fr"], ["corpora.0.languages: unknown language 'fr'", "en, de, ja"]),
    ("corpora.0.languages", ["en"], ["corpora.0.languages: found only en"]),
    ("corpora.0.without", ["de", "ja"], ["corpora.0.without: no language is left without de, ja"]),
    ("evalsets.tatoeba.without", ["de", "ja"], ["evalsets.tatoeba.without: no language is left"]),
    ("corpora.0.languages", ["de", "de"], ["corpora.0.languages", "non-unique"]),
    ("segmenters.xx", "none", ["segmenters: unknown language 'xx'", "af, ar, bg"]),
    ("segmenters.ja", "juman", ["segmenters.ja: found 'juman'", "moses", "jieba, jumanpp"]),
    ("evalsets.tatoeba.languages", ["fr"], ["evalsets.tatoeba.languages", "'fr'", "de, ja"]),
    ("evalsets.tatoeba.languages", [], ["evalsets.tatoeba.languages: none of the languages"]),
    ("corpora.0.name", "Tatoba", ["corpora.0.name: unknown corpus 'Tatoba'", "Tatoeba, tico-19"]),
    ("corpora.0.version", "v1", ["corpora.0.version: unknown version 'v1'", "v2021-08-07"]),
    ("validation.version", "v9", ["validation.version: unknown version 'v9'", "allowed: v1"]),
    (
        "validation",
        {"name": "Tatoeba", "version": "v2021-08-07"},
        ["Tatoeba/v2021-08-07 is named twice"],
    ),
    # values that do not fit each other
    ("model.width", 33, ["systems.a: model.width 33 is no multiple of model.heads 2"]),
    ("systems.b.model.heads", 5, ["systems.b: model.width 32 is no multiple of model.heads 5"]),
    (
        "systems.b.objectives",
        {"xtr": {"weight": 0}, "contrastive": {"weight": 0}},
        ["systems.b: every objective has weight 0"],
    ),
    (
        "systems.b.objectives",
        {"mlm": {"weight": 1}, "ugt": {"weight": 1}},
        ["systems.b: mlm masks 15 % of the tokens, ugt one of each pair", "choose one"],
    ),
    (
        "systems.b",
        {"objectives": {"mlm": {"weight": 1}}, "train": {"input_mask": "one"}},
        ["systems.b: mlm masks 15 %", "train.input_mask: one"],
    ),
    (
        "systems.b.objectives.matryoshka",
        {"weight": 1},
        ["systems.b: objectives.matryoshka.dimensions: this list is empty"],
    ),
    (
        "systems.b.objectives.matryoshka",
        {"weight": 1, "dimensions": [16, 33]},
        ["systems.b: objectives.matryoshka.dimensions: 33 is more than model.width, 32"],
    ),
    (
        "systems.b.objectives.contrastive.negatives",
        10,
        ["systems.b: objectives.contrastive.negatives: 10 pairs", "train.batch_pairs, 152"],
    ),
]


@pytest.mark.parametrize(("path", "new", "parts"), MISTAKES)
def test_a_mistake_is_one_line_with_the_key_and_what_is_allowed(project, path, new, parts):
    message = project.told(edited(REAL, path, new))
    for part in parts:
        assert part in message


def test_the_minimal_experiment_is_no_mistake(project):
    assert project.load(REAL).name == "mine"


def test_an_unknown_experiment_is_told_with_those_that_are_here(project):
    project.write(REAL, "yours")
    message = project.told(experiment="nope")
    assert "experiment: " in message
    assert "nope.yaml does not exist; the experiments here: mine, yours" in message


@pytest.mark.parametrize(
    ("path", "new", "parts"),
    [
        ("experimnt", "x", ["experimnt: unknown key (did you mean experiment?)"]),
        ("sources.opsu", "x", ["sources.opsu: unknown key", "opus, pawsx, sib200"]),
        ("gpus", -1, ["gpus: -1", "minimum of 0"]),
        ("data", GONE, ["data: this key is missing"]),
    ],
)
def test_a_mistake_in_the_site_settings_is_one_line_too(project, path, new, parts):
    project.site(edited(SITE, path, new))
    message = project.told()
    assert "config.yaml" in message
    assert all(part in message for part in parts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: [1", "not valid YAML"),
        ("- a\n- b\n", "expected `key: value` lines, found list"),
        ("", "the file is empty"),
        ("systems:\n  a: {}\n  a: {kind: encoder}\n", "the key a is there twice .*line 3"),
    ],
    ids=["broken", "a list", "empty", "a key twice"],
)
def test_a_file_that_is_no_mapping_is_one_line_with_its_name(project, text, message):
    project.write(text)
    with pytest.raises(EmsError, match=rf"mine\.yaml: .*{message}"):
        project.load()
    assert "\n" not in project.told()


def test_a_segmenter_that_cannot_run_here_is_told_before_any_job(project, monkeypatch, tmp_path):
    from ems.segmenters.base import check_available

    check_available.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    message = project.told(edited(REAL, "segmenters.ja", "jumanpp"))
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


def test_the_ablation_table_has_the_systems_of_the_others_unless_it_names_its_own(project):
    every = project.load(edited(REAL, "tables.systems", ["ngram", "a"]))
    assert every.ablated == every.shown
    assert every.learning(every.ablated) == ["a"]
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


def test_an_own_language_alone_may_lack_the_benchmark_only_with_a_clear_line(project):
    message = project.told(edited(REAL, "languages", ["en", {"code": "xq"}]))
    assert "evalsets.tatoeba.languages: none of the languages is in the benchmark" in message


def test_a_corpus_of_ones_own_needs_no_entry_in_the_catalogue(project):
    own = {"name": "Mine", "version": "2024", "source": "some/where", "languages": ["ja"]}
    experiment = project.load(edited(REAL, "corpora.0", own))
    corpus = experiment.corpora[0]
    assert (corpus.source, corpus.pairs, corpus.own) == ("some/where", ("en-ja",), True)
    assert experiment.validation.source == "o"  # the site's


def test_an_experiments_sources_win_over_the_sites(project):
    experiment = project.load(edited(REAL, "sources", {"opus": "mine"}))
    assert [experiment.sources[name] for name in ("opus", "tatoeba")] == ["mine", "t"]
    assert {corpus.source for _, corpus in experiment.all_corpora()} == {"mine"}


def test_an_unknown_corpus_of_an_experiment_is_an_error(project):
    experiment = project.load()
    assert experiment.corpus("NTREX", "v1") == ("validation", experiment.validation)
    with pytest.raises(EmsError, match="experiment mine has no corpus A/v1"):
        experiment.corpus("A", "v1")


# --- the file itself


def test_yaml_keeps_what_it_says(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("a: {b: [1, 2.5, on, null]}\nc: ü\n", encoding="utf-8")
    assert load_yaml(path) == {"a": {"b": [1, 2.5, "on", None]}, "c": "ü"}
    with pytest.raises(EmsError, match=r"y\.yaml: no such file"):
        load_yaml(tmp_path / "y.yaml")
