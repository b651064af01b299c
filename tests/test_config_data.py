"""Laws of the data that an experiment names: parts, fallbacks, and the languages of a benchmark."""

import csv
from importlib.resources import files

import pytest
from made.experiments import DIVIDED, GONE, REAL, Settings, changed_jobs, edited, shipped

from ems.config.experiment import UNSEEN

PARTS = {"train": 0.5, "validation": 0.1, "test": 0.4}


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, DIVIDED)


# --- corpora


def test_a_part_is_named_with_its_corpus_and_a_whole_one_plainly(project):
    experiment = project.load()
    corpora = [(role, corpus.label, corpus.name) for role, corpus in experiment.all_corpora()]
    assert corpora == [
        ("train", "Tatoeba", "Tatoeba"),
        ("train", "NTREX+train", "NTREX"),
        ("validation", "NTREX+validation", "NTREX"),
    ]
    assert experiment.splits["NTREX"].parts == PARTS
    assert experiment.evalsets["ntrex"].part == "test"
    assert experiment.corpus("NTREX+train", "v1") == ("train", experiment.corpora[1])


def test_a_corpus_has_the_experiments_languages_less_those_that_it_is_without(project):
    for own in ({}, {"languages": ["de", "ja"]}):
        corpus = {**DIVIDED["corpora"][0], "without": ["de", "sk"], **own}
        assert project.load(edited(DIVIDED, "corpora.0", corpus)).corpora[0].pairs == ("en-ja",)


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


def test_a_fallback_without_a_pair_of_its_own_is_a_mistake(project):
    corpora = [TATOEBA, {**STRINGS, "fallback": True}, NUSAX]
    message = project.error(REAL | {"corpora": corpora, "validation": None})
    assert "corpora.0.fallback: every pair of Tatoeba is in another corpus" in message


def test_what_validates_does_not_push_a_fallback_out(project):
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


def test_a_corpus_of_an_unknown_vocabulary_is_an_error(project):
    value = REAL | {"corpora": [{**REAL["corpora"][0], "vocabularies": ["one"]}]}
    assert "corpora.0.vocabularies: one has no entry under vocabularies" in project.error(value)


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
    assert "validation.1.part" in project.error(
        REAL | {"validation": [ntrex, {**OWN, "part": "x"}]}
    )
    assert "validation: [] should be non-empty" in project.error(REAL | {"validation": []})
    assert "Own/v1 is listed twice" in project.error(REAL | {"validation": [documents, documents]})


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


def test_all_of_tatoeba_are_the_languages_of_tables_four_and_six_and_the_latter_unseen(project):
    value = DIVIDED | {"languages": [row["iso1"] for row in language_table()]}
    value = edited(value, "segmenters.default", "none")
    codes = project.load(value).evalsets["tatoeba"].languages
    assert len(codes) == 112
    unseen = {code for code, language in codes.items() if language == UNSEEN}
    assert len(unseen) == 54
    assert unseen == printed("06-tatoeba-unseen")
    assert set(codes) - unseen == printed("04-tatoeba")


def test_the_shipped_experiment_of_62_languages_scores_the_papers_unseen_ones():
    experiment = shipped("small62")
    codes = experiment.evalsets["tatoeba"].languages
    assert len(experiment.languages) == 62
    unseen = {code for code, language in codes.items() if language == UNSEEN}
    assert unseen == printed("06-tatoeba-unseen")
    assert UNSEEN not in experiment.evalsets["ntrex"].languages.values()


def test_all_of_a_benchmark_does_not_depend_on_what_the_experiment_trains_on(project):
    more = edited(DIVIDED, "languages", ["en", "de", "ja", "fr", "sw"])
    few, more = project.load(DIVIDED), project.load(more)
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


def test_languages_of_the_experiment_are_the_ones_unless_all_are_asked_for(project):
    value = DIVIDED
    for name in DIVIDED["evalsets"]:
        value = edited(value, f"evalsets.{name}.languages", GONE)
    evalsets = {name: entry.languages for name, entry in project.load(value).evalsets.items()}
    assert evalsets == {
        "tatoeba": {"deu": "de", "jpn": "ja"},
        "flores200": {"eng_Latn": "en", "deu_Latn": "de", "jpn_Jpan": "ja"},
        "sib200": {"eng_Latn": "en", "deu_Latn": "de", "jpn_Jpan": "ja"},
        "ntrex": {"de": "de", "ja": "ja"},
    }


def test_a_list_of_tatoebas_languages_may_name_some_that_are_not_trained_on(project):
    experiment = project.load(edited(DIVIDED, "evalsets.tatoeba.languages", ["ja", "it", "de"]))
    assert list(experiment.evalsets["tatoeba"].languages) == ["jpn", "ita", "deu"]
    assert experiment.spoken("tatoeba") == {"jpn": "ja", "ita": UNSEEN, "deu": "de"}


def test_without_takes_languages_away_from_all_and_from_a_list(project):
    value = edited(DIVIDED, "evalsets.tatoeba.without", ["ja", "eo"])
    value = edited(value, "evalsets.ntrex.without", ["eo", "jv"])
    value = edited(value, "evalsets.flores200", {"version": "v1", "without": ["de"]})
    evalsets = project.load(value).evalsets
    assert "jpn" not in evalsets["tatoeba"].languages
    assert not {"eo", "jv"} & set(evalsets["ntrex"].languages)
    assert len(evalsets["ntrex"].languages) == 59
    assert evalsets["flores200"].languages == {"eng_Latn": "en", "jpn_Jpan": "ja"}


def test_a_language_of_ones_own_is_in_the_benchmarks_whose_codes_it_names(project):
    own = {"code": "xq", "tatoeba_v1": "xqq", "flores200": "xqq_Latn"}
    evalsets = project.load(edited(DIVIDED, "languages", ["en", "de", own])).evalsets
    for name, code in (("tatoeba", "xqq"), ("flores200", "xqq_Latn"), ("ntrex", "xq")):
        assert evalsets[name].languages[code] == "xq"
    assert len(evalsets["tatoeba"].languages) == 113


def test_unseen_languages_take_the_default_segmenter(project):
    assert project.load(edited(DIVIDED, "segmenters", {"ja": "none"})).segmenters == {
        UNSEEN: "moses",
        "en": "moses",
        "de": "moses",
        "ja": "none",
    }
    chosen = project.load(edited(DIVIDED, "segmenters", {"default": "sacremoses", "ja": "none"}))
    assert chosen.segmenters[UNSEEN] == "sacremoses"


# --- one language more

OF_TATOEBA, OF_NTREX = (
    {"evalkeys", *(f"bench {system} {name}" for system in ("a", "b", "ngram"))}
    for name in ("tatoeba", "ntrex")
)
LEARNT = {"vocabulary shared", "train a", "train b"} | (OF_TATOEBA | OF_NTREX) - {"evalkeys"}


def test_one_language_more_leaves_the_evaluation_sentences_and_the_other_pairs_alone(project):
    more = edited(DIVIDED, "languages", ["en", "de", "ja", "fr"])
    assert changed_jobs(project, DIVIDED, more) == LEARNT


def test_a_language_of_ones_own_does_so_too_if_the_benchmark_has_it_already(project):
    """Welsh is among the 112 languages of Tatoeba, but not in the table, and not in NTREX. There
    the n-grams weigh otherwise: they are counted in its text, too.
    """
    before = edited(DIVIDED, "evalsets.ntrex.without", ["cy"])
    welsh = {"code": "cy", "tatoeba_v1": "cym"}
    more = edited(before, "languages", ["en", "de", "ja", welsh])
    assert changed_jobs(project, DIVIDED, more) == LEARNT


OF_SPLIT = OF_NTREX | {
    f"clean NTREX+{part} {pair}" for part in ("train", "validation") for pair in ("de-en", "en-ja")
}
CLEAN = OF_SPLIT - OF_NTREX | {"clean Tatoeba de-en", "clean Tatoeba en-ja"}


@pytest.mark.parametrize(
    ("path", "new", "changed"),
    [
        ("corpora.0.fallback", False, set()),
        ("splits.NTREX.documents", "other.tsv", OF_SPLIT),
        ("splits.NTREX.parts", {"train": 0.4, "validation": 0.2, "test": 0.4}, OF_SPLIT),
        ("evalsets.flores200.version", "v2", {"evalkeys"}),
        ("evalsets.sib200.without", ["de"], {"evalkeys"}),
        ("evalsets.ntrex.without", ["eo"], OF_NTREX),
        ("evalsets.tatoeba.without", ["de"], OF_TATOEBA),
        ("decontaminate.against", ["ntrex"], {"evalkeys"} | CLEAN),
        ("segmenters.fr", "jieba", set()),
    ],
)
def test_an_edit_of_the_data_changes_the_hash_of_the_jobs_that_read_it(project, path, new, changed):
    assert changed_jobs(project, DIVIDED, edited(DIVIDED, path, new)) == changed
