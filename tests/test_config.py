"""Laws of a valid experiment: what its systems, corpora, parts and benchmarks are made of."""

import copy
import csv
import subprocess
import sys
from importlib.resources import files

import pytest
from conftest import ROOT
from made.experiments import (
    DIVIDED,
    GONE,
    REAL,
    SHIPPED,
    SITE,
    Settings,
    changed_jobs,
    edited,
    shipped,
)

from ems.base.errors import EmsError
from ems.base.schema import merge, plain
from ems.config.experiment import UNSEEN
from ems.config.load import load_site
from ems.corpora.catalogue import check_corpora


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, REAL)


@pytest.fixture
def divided(tmp_path):
    return Settings(tmp_path, DIVIDED)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_experiment_loads_and_knows_its_corpora(name):
    assert load_site(ROOT / "config.yaml").experiment in SHIPPED
    experiment = shipped(name)
    check_corpora(experiment)
    assert experiment.name == name
    assert experiment.systems
    assert all(corpus.pairs for _, corpus in experiment.all_corpora())


ALONE = """
import os, sys
from pathlib import Path
from ems.config.load import load_experiment, load_site
for name in sys.argv[1:]:
    if not os.fork():
        site = load_site(Path("config.yaml"), {"experiment": name})
        print(load_experiment(name, site), flush=True)
        os._exit(0)
    os.wait()
"""


def test_nothing_of_one_experiment_leaks_into_another():
    command = [sys.executable, "-c", ALONE, *SHIPPED]
    alone = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    read = shipped.__wrapped__  # not the experiments that the tests share
    for name in SHIPPED:
        spoilt = read(name)
        spoilt.systems.clear()
        spoilt.decontaminate.against.append("spoilt")
        spoilt.segmenters["en"] = "spoilt"
    assert [str(read(name)) for name in SHIPPED] == alone.splitlines()


@pytest.mark.parametrize(
    ("path", "new", "line"),
    [
        ("experimnt", "x", "config.yaml: experimnt: unknown key (did you mean experiment?)"),
        ("sources.opsu", "x", "config.yaml: sources.opsu: unknown key"),
        ("data", GONE, "config.yaml: data: this key is missing"),
    ],
)
def test_a_mistake_in_the_site_settings_is_one_line_too(project, path, new, line):
    project.site(edited(SITE, path, new))
    assert line in project.error()


def test_a_system_is_the_base_plus_its_overrides(project):
    value = edited(REAL, "systems.b", {"model": {"layers": 1}, "train": {"steps": 0}})
    systems = project.load(value).systems
    a, b = systems["a"], systems["b"]
    assert a.model.layers == 6
    assert plain(b.model) == {**plain(a.model), "layers": 1}
    assert plain(b.train) == {**plain(a.train), "steps": 0}
    assert b.objectives == a.objectives
    assert (a.kind, systems["ngram"].kind) == ("encoder", "char-ngram")


STUDY = {"caption": "x", "columns": {"tatoeba": ["en-de"]}, "rows": {"one": "b"}}


@pytest.mark.parametrize(
    ("tables", "shown", "ablated", "tabled"),
    [
        ({}, "a b ngram", "a b ngram", "a b ngram"),
        ({"systems": ["ngram", "a"]}, "ngram a", "ngram a", "ngram a"),
        ({"ablation": ["b", "a"]}, "a b ngram", "b a", "a b ngram"),
        (
            {"systems": ["ngram"], "ablation": ["a", "ngram"], "studies": {"x": STUDY}},
            "ngram",
            "a ngram",
            "ngram a b",
        ),
    ],
)
def test_tables_show_all_systems_or_the_named_ones(project, tables, shown, ablated, tabled):
    own = project.load(REAL | {"tables": tables})
    lists = [" ".join(names) for names in (own.shown, own.ablated, own.tabled, own.listed)]
    assert lists == [shown, ablated, tabled, "a b ngram"]
    assert own.learning(["a", "ngram", "a"]) == ["a"]


def test_merging_leaves_its_inputs_unchanged():
    base = {"a": {"x": 1, "y": {"z": 2}}, "b": [1]}
    over = {"a": {"y": {"w": 3}}, "b": [2], "c": {"d": 4}}
    before = copy.deepcopy((base, over))
    assert merge(base, over) == {"a": {"x": 1, "y": {"z": 2, "w": 3}}, "b": [2], "c": {"d": 4}}
    assert (base, over) == before


def test_a_language_of_your_own_needs_no_entry_in_the_table(divided):
    own = {"code": "xq", "tatoeba_v1": "xqq", "flores200": "xqq_Latn", "script": "Latin"}
    experiment = divided.load(edited(DIVIDED, "languages", ["en", "de", own]))
    assert experiment.corpora[0].pairs == ("de-en", "en-xq")
    assert experiment.segmenters["xq"] == "none"
    for name, code in (("tatoeba", "xqq"), ("flores200", "xqq_Latn"), ("ntrex", "xq")):
        assert experiment.evalsets[name].languages[code] == "xq"
    assert len(experiment.evalsets["tatoeba"].languages) == 113
    bare = divided.load(edited(REAL, "languages", ["en", "de", {"code": "xq"}]))
    assert bare.evalsets["tatoeba"].languages == {"deu": "de"}


# --- corpora


def test_a_corpus_of_your_own_needs_no_entry_in_the_catalogue(project):
    own = {"name": "Mine", "version": "2024", "source": "some/where", "languages": ["ja"]}
    experiment = project.load(edited(REAL, "corpora.0", own))
    corpus = experiment.corpora[0]
    assert (corpus.source, corpus.pairs, corpus.custom) == ("some/where", ("en-ja",), True)
    assert experiment.validation[0].source == "o"  # the site's


def test_an_experiments_sources_win_over_the_sites(project):
    experiment = project.load(edited(REAL, "sources", {"opus": "mine"}))
    assert [experiment.sources[name] for name in ("opus", "tatoeba")] == ["mine", "t"]
    assert {corpus.source for _, corpus in experiment.all_corpora()} == {"mine"}


def test_a_part_is_named_with_its_corpus_and_a_whole_one_plainly(divided):
    experiment = divided.load()
    corpora = [(role, corpus.label, corpus.name) for role, corpus in experiment.all_corpora()]
    assert corpora == [
        ("train", "Tatoeba", "Tatoeba"),
        ("train", "NTREX+train", "NTREX"),
        ("validation", "NTREX+validation", "NTREX"),
    ]
    assert experiment.evalsets["ntrex"].part == "test"
    assert experiment.corpus("NTREX+train", "v1") == ("train", experiment.corpora[1])
    with pytest.raises(EmsError, match="experiment mine has no corpus A/v1"):
        experiment.corpus("A", "v1")


def test_without_takes_languages_away_from_a_corpus(divided):
    for own in ({}, {"languages": ["de", "ja"]}):
        corpus = {**DIVIDED["corpora"][0], "without": ["de", "sk"], **own}
        assert divided.load(edited(DIVIDED, "corpora.0", corpus)).corpora[0].pairs == ("en-ja",)


TATOEBA = {"name": "Tatoeba", "version": "v2021-08-07", "fallback": True}
STRINGS, NUSAX = ({"name": name, "version": "v1"} for name in ("Mozilla-I10n", "NusaX"))


@pytest.mark.parametrize(
    ("corpora", "pairs"),
    [
        ([TATOEBA, {**STRINGS, "languages": ["de"]}], [("en-ja",), ("de-en",)]),
        ([{**STRINGS, "languages": ["de"]}, TATOEBA], [("de-en",), ("en-ja",)]),  # in any order
        ([TATOEBA, {**STRINGS, "without": ["de"]}], [("de-en",), ("en-ja",)]),
        ([{**TATOEBA, "fallback": False}, STRINGS], [("de-en", "en-ja")] * 2),
        ([TATOEBA], [("de-en", "en-ja")]),
        # two fallbacks do not push each other out
        (
            [TATOEBA, {**STRINGS, "fallback": True}, {**NUSAX, "languages": ["de"]}],
            [("en-ja",), ("en-ja",), ("de-en",)],
        ),
    ],
)
def test_a_fallback_is_used_for_the_pairs_that_no_other_corpus_has(project, corpora, pairs):
    """EMS v2 section IV-A: Tatoeba only for languages without other parallel corpora."""
    experiment = project.load(REAL | {"corpora": corpora, "validation": None})
    assert [corpus.pairs for corpus in experiment.corpora] == pairs


def test_validation_does_not_push_a_fallback_out(project):
    """It is not trained on, so the language would have nothing at all."""
    value = REAL | {"corpora": [TATOEBA]}
    assert project.load(value).validation[0].pairs == ("de-en", "en-ja")
    assert project.load(value).corpora[0].pairs == ("de-en", "en-ja")


OWN = {"name": "Own", "version": "v1", "source": "here"}
TWO = {"vocabularies": {"one": {"languages": ["en", "de"]}, "two": {"languages": ["en", "ja"]}}}


def test_a_corpus_of_a_vocabulary_takes_the_place_of_others_of_its_languages_there_alone(project):
    own = {**OWN, "languages": ["de"], "vocabularies": ["one"]}
    experiment = project.load(REAL | TWO | {"corpora": [REAL["corpora"][0], own]})

    def of(*names):
        return [(corpus.name, pair) for corpus, pair in experiment.pairs_of(*names)]

    assert of("train", "one") == [("Own", "de-en")]
    assert of("train", "two") == [("Tatoeba", "en-ja")]
    assert of("train") == [("Tatoeba", "de-en"), ("Tatoeba", "en-ja")]
    assert of("validation", "one") == [("NTREX", "de-en")]  # nothing is trained on it
    both = {**OWN, "vocabularies": ["one", "two"]}
    experiment = project.load(REAL | TWO | {"corpora": [REAL["corpora"][0], both]})
    assert of("train", "two") == [("Own", "en-ja")]


def test_objectives_need_a_corpus_of_their_kind_in_their_own_vocabulary(project):
    own = {**OWN, "kind": "documents", "vocabularies": ["one"]}
    value = REAL | TWO | {"corpora": [REAL["corpora"][0], own]}
    learns = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}, "context": {"weight": 1}}
    system = {"vocabulary": "one", "objectives": learns}
    assert project.load(value | {"systems": {"a": system}}).systems["a"].vocabulary == "one"
    other = {"systems": {"a": system | {"vocabulary": "two"}}}
    assert "systems.a: context learns from documents" in project.error(value | other)


def test_validation_is_one_corpus_or_a_list_of_them(project):
    ntrex = REAL["validation"]
    documents = {**OWN, "kind": "documents"}
    experiment = project.load(REAL | {"validation": [ntrex, documents]})
    assert [corpus.label for corpus in experiment.validation] == ["NTREX", "Own"]
    listed, alone = (
        changed_jobs(project, REAL, REAL | {"validation": of}) for of in ([ntrex], ntrex)
    )
    assert listed == alone == set()


# --- the languages of a benchmark


def printed(table):
    """The Tatoeba codes of a table of EMS v2 as it is copied for the tables."""
    name = f"ems-v2-table{table}.csv"
    text = files("ems.tables").joinpath("printed", name).read_text(encoding="utf-8")
    codes = dict.fromkeys(row["language"] for row in csv.DictReader(text.splitlines()))
    return {code for code in codes if code.islower()}  # not "Avg."


def language_table():
    """The rows of languages.tsv."""
    text = files("ems.config.languages").joinpath("languages.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_all_of_tatoeba_are_the_languages_of_tables_four_and_six_the_latter_unseen(divided):
    value = DIVIDED | {"languages": [row["iso1"] for row in language_table()]}
    codes = divided.load(value).evalsets["tatoeba"].languages
    unseen = {code for code, language in codes.items() if language == UNSEEN}
    assert (len(codes), len(unseen)) == (112, 54)
    assert unseen == printed("06-tatoeba-unseen")
    assert set(codes) - unseen == printed("04-tatoeba")
    assert shipped("small62").evalsets["tatoeba"].languages == codes


def test_all_of_a_benchmark_does_not_depend_on_the_languages_of_the_experiment(divided):
    more = edited(DIVIDED, "languages", ["en", "de", "ja", "fr", "sw"])
    few, more = divided.load(DIVIDED), divided.load(more)
    table = language_table()
    assert len(table) == 62
    of_flores = {row["flores200"] for row in table} - {"-"}
    of_ntrex = {row["iso1"] for row in table} - {"en"}
    for name, french, expected in (
        ("tatoeba", "fra", set(few.evalsets["tatoeba"].languages)),
        ("flores200", "fra_Latn", of_flores),
        ("sib200", "fra_Latn", of_flores),
        ("ntrex", "fr", of_ntrex),
    ):
        for experiment, spoken in ((few, UNSEEN), (more, "fr")):
            assert set(experiment.evalsets[name].languages) == expected
            assert experiment.evalsets[name].languages[french] == "fr"
            assert experiment.spoken(name)[french] == spoken
    assert few.spoken("ntrex")["de"] == few.spoken("tatoeba")["deu"] == "de"


def test_a_benchmark_has_the_languages_of_the_experiment_by_default(divided):
    value = DIVIDED
    for name in DIVIDED["evalsets"]:
        value = edited(value, f"evalsets.{name}.languages", GONE)
    evalsets = {name: entry.languages for name, entry in divided.load(value).evalsets.items()}
    flores = {"eng_Latn": "en", "deu_Latn": "de", "jpn_Jpan": "ja"}
    assert evalsets == {
        "tatoeba": {"deu": "de", "jpn": "ja"},
        **dict.fromkeys(("flores200", "sib200"), flores),
        "ntrex": {"de": "de", "ja": "ja"},
    }


def test_a_list_of_tatoebas_languages_may_name_some_that_are_not_trained_on(divided):
    experiment = divided.load(edited(DIVIDED, "evalsets.tatoeba.languages", ["ja", "it", "de"]))
    assert list(experiment.evalsets["tatoeba"].languages) == ["jpn", "ita", "deu"]
    assert experiment.spoken("tatoeba") == {"jpn": "ja", "ita": UNSEEN, "deu": "de"}


def test_without_takes_languages_away_from_all_and_from_a_list(divided):
    value = edited(DIVIDED, "evalsets.tatoeba.without", ["ja", "eo"])
    value = edited(value, "evalsets.ntrex.without", ["eo", "jv"])
    value = edited(value, "evalsets.flores200", {"version": "v1", "without": ["de"]})
    evalsets = divided.load(value).evalsets
    assert "jpn" not in evalsets["tatoeba"].languages
    assert not {"eo", "jv"} & set(evalsets["ntrex"].languages)
    assert len(evalsets["ntrex"].languages) == 59
    assert evalsets["flores200"].languages == {"eng_Latn": "en", "jpn_Jpan": "ja"}


def test_unseen_languages_take_the_default_segmenter(divided):
    assert divided.load(edited(DIVIDED, "segmenters", {"ja": "none"})).segmenters == {
        UNSEEN: "moses",
        "en": "moses",
        "de": "moses",
        "ja": "none",
    }
    chosen = divided.load(edited(DIVIDED, "segmenters", {"default": "sacremoses", "ja": "none"}))
    assert chosen.segmenters[UNSEEN] == "sacremoses"
