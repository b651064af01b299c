"""Laws of the data that an experiment names: parts, fallbacks, and the languages of a benchmark."""

import csv
from importlib.resources import files

import pytest
import yaml
from experiments_made import GONE, REAL, Settings, edited, shipped

from ems.config import UNSEEN, stage_hash

PARTS = {"train": 0.5, "validation": 0.1, "test": 0.4}
DIVIDED = REAL | yaml.safe_load("""
splits: {NTREX: {documents: DOCUMENT_IDS.tsv, parts: {train: 0.5, validation: 0.1, test: 0.4}}}
corpora:
  - {name: Tatoeba, version: v2021-08-07}
  - {name: NTREX, version: v1, part: train}
validation: {name: NTREX, version: v1, part: validation}
evalsets:
  tatoeba: {version: v1, languages: all}
  flores200: {version: v1, languages: all}
  sib200: {version: v1, languages: all}
  ntrex: {version: v1, languages: all, part: test}
decontaminate: {against: [tatoeba, flores200, sib200, ntrex]}
benchmarks: [tatoeba, ntrex]
""")
MISTAKES = [
    # parts
    ("splits.NTREX.parts.test", 0.3, ["splits.NTREX.parts: the shares add up to 0.9", "to 1"]),
    ("splits.NTREX.parts.test", 0.5, ["splits.NTREX.parts: the shares add up to 1.1", "to 1"]),
    ("splits.NTREX.parts.test", 0, ["splits.NTREX.parts.test: 0"]),
    ("splits.NTREX.parts", {"all": 1}, ["splits.NTREX.parts"]),
    ("splits.NTREX.documents", GONE, ["splits.NTREX.documents: this key is missing"]),
    ("splits", {}, ["corpora.1.part: train, but splits does not say how NTREX is divided"]),
    ("corpora.0.part", "train", ["corpora.0.part: train, but splits", "how Tatoeba is divided"]),
    ("corpora.1.part", "x", ["corpora.1.part: found 'x'; allowed values: train, validation, test"]),
    ("corpora.1.part", GONE, ["corpora.1.part: this key is missing; NTREX is divided"]),
    ("validation.part", "x", ["validation.part: found 'x'", "splits.NTREX.parts"]),
    ("validation.part", "train", ["NTREX+train/v1 is named twice (validation counts too)"]),
    ("evalsets.ntrex.part", "x", ["evalsets.ntrex.part: found 'x'", "train, validation, test"]),
    ("evalsets.ntrex.part", GONE, ["evalsets.ntrex.part: this key is missing; NTREX is divided"]),
    ("evalsets.tatoeba.part", "test", ["evalsets.tatoeba.part"]),
    ("corpora.1.source", "elsewhere", ["the parts of NTREX must have the same source"]),
    # languages of a corpus
    ("corpora.0.without", ["xx"], ["corpora.0.without: unknown language 'xx'", "af, ar, bg"]),
    ("corpora.0.without", ["de", "ja"], ["corpora.0.without: no language is left"]),
    # a fallback of which nothing is left
    ("corpora.0.fallback", True, ["corpora.0.fallback: every pair of Tatoeba is in another"]),
    # what is the benchmark is neither trained nor selected on
    ("corpora.1.part", "test", ["evalsets.ntrex.part: NTREX+test is one of the corpora too"]),
    # languages of a benchmark
    (
        "evalsets.tatoeba.languages",
        "al",
        ["evalsets.tatoeba.languages: found 'al'", "experiment, all"],
    ),
    ("evalsets.flores200.languages", ["fr"], ["evalsets.flores200.languages", "en, de, ja"]),
    ("evalsets.ntrex.languages", ["en"], ["evalsets.ntrex.languages", "'en'", "de, ja"]),
    ("evalsets.sib200.without", ["xx"], ["evalsets.sib200.without: unknown language 'xx'"]),
    (
        "evalsets.ntrex",
        {"version": "v1", "part": "test", "without": ["de", "ja"]},
        ["evalsets.ntrex.without: no language is left without de, ja; take one out of it"],
    ),
    ("evalsets.ntrex", GONE, ["benchmarks: ntrex has no entry under evalsets"]),
    ("evalsets.sib200", GONE, ["decontaminate.against: sib200 has no entry under evalsets"]),
]


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, DIVIDED)


@pytest.mark.parametrize(("path", "new", "parts"), MISTAKES)
def test_a_mistake_is_one_line_with_the_key_and_what_is_allowed(project, path, new, parts):
    message = project.told(edited(DIVIDED, path, new))
    assert all(part in message for part in parts), message


# --- corpora


def test_a_part_is_named_with_its_corpus_and_a_whole_one_plainly(project):
    experiment = project.load()
    found = [(role, corpus.label, corpus.name) for role, corpus in experiment.all_corpora()]
    assert found == [
        ("train", "Tatoeba", "Tatoeba"),
        ("train", "NTREX+train", "NTREX"),
        ("validation", "NTREX+validation", "NTREX"),
    ]
    assert experiment.splits["NTREX"].parts == PARTS
    assert experiment.evalsets["ntrex"].part == "test"
    assert experiment.corpus("NTREX+train", "v1") == ("train", experiment.corpora[1])


def test_a_corpus_has_the_experiments_languages_less_those_that_it_is_without(project):
    chosen = edited(DIVIDED, "corpora.0", {**DIVIDED["corpora"][0], "without": ["de", "sk"]})
    assert project.load(chosen).corpora[0].pairs == ("en-ja",)
    chosen = edited(chosen, "corpora.0.languages", ["de", "ja"])
    assert project.load(chosen).corpora[0].pairs == ("en-ja",)


TATOEBA = {"name": "Tatoeba", "version": "v2021-08-07", "fallback": True}
BIBLE = {"name": "bible-uedin", "version": "v1"}


@pytest.mark.parametrize(
    ("corpora", "pairs"),
    [
        ([TATOEBA, {**BIBLE, "languages": ["de"]}], [("en-ja",), ("de-en",)]),
        ([{**BIBLE, "languages": ["de"]}, TATOEBA], [("de-en",), ("en-ja",)]),  # in any order
        ([TATOEBA, {**BIBLE, "without": ["de"]}], [("de-en",), ("en-ja",)]),
        ([{**TATOEBA, "fallback": False}, BIBLE], [("de-en", "en-ja")] * 2),
        ([TATOEBA], [("de-en", "en-ja")]),
        # two fallbacks do not push each other out
        (
            [TATOEBA, {**BIBLE, "fallback": True}, {"name": "NusaX", "version": "v1"}],
            ["corpora.0.fallback: every pair of Tatoeba is in another corpus"],
        ),
        (
            [
                TATOEBA,
                {**BIBLE, "fallback": True},
                {"name": "NusaX", "version": "v1", "languages": ["de"]},
            ],
            [("en-ja",), ("en-ja",), ("de-en",)],
        ),
    ],
)
def test_a_fallback_is_used_for_the_pairs_that_no_other_corpus_has(project, corpora, pairs):
    """EMS v2 section IV-A: Tatoeba only for languages without other parallel corpora."""
    value = REAL | {"corpora": corpora, "validation": None}
    if isinstance(pairs[0], str):
        assert pairs[0] in project.told(value)
    else:
        assert [corpus.pairs for corpus in project.load(value).corpora] == pairs


def test_what_validates_does_not_push_a_fallback_out(project):
    """It is not trained on, so the language would have nothing at all."""
    value = REAL | {"corpora": [TATOEBA]}
    assert project.load(value).validation.pairs == ("de-en", "en-ja")
    assert project.load(value).corpora[0].pairs == ("de-en", "en-ja")


# --- the languages of a benchmark


def printed(table):
    """The Tatoeba codes of a table of EMS v2 as it is copied for the tables."""
    name = f"ems-v2-table{table}.csv"
    text = files("ems.tables").joinpath("printed", name).read_text(encoding="utf-8")
    codes = dict.fromkeys(row["language"] for row in csv.DictReader(text.splitlines()))
    return {code for code in codes if code.islower()}  # not "Avg."


def language_table():
    """The rows of languages.tsv."""
    text = files("ems.languages").joinpath("languages.tsv").read_text(encoding="utf-8")
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
    assert {code for code, language in codes.items() if language == UNSEEN} == printed(
        "06-tatoeba-unseen"
    )
    assert UNSEEN not in experiment.evalsets["ntrex"].languages.values()


MORE = ["en", "de", "ja", "fr", "sw"]


def test_all_of_a_benchmark_does_not_depend_on_what_the_experiment_trains_on(project):
    few = project.load(DIVIDED).evalsets
    more = project.load(edited(DIVIDED, "languages", MORE)).evalsets
    table = language_table()
    assert len(table) == 62
    for name, expected in (
        ("flores200", {row["flores200"] for row in table}),
        ("sib200", {row["flores200"] for row in table}),
        ("ntrex", {row["iso1"] for row in table} - {"en"}),
    ):
        assert set(few[name].languages) == set(more[name].languages) == expected - {"-"}
    assert set(few["tatoeba"].languages) == set(more["tatoeba"].languages)
    french = (
        ("tatoeba", "fra"),
        ("flores200", "fra_Latn"),
        ("sib200", "fra_Latn"),
        ("ntrex", "fr"),
    )
    few, more = project.load(DIVIDED), project.load(edited(DIVIDED, "languages", MORE))
    for name, code in french:
        assert few.evalsets[name].languages[code] == more.evalsets[name].languages[code] == "fr"
        assert (few.spoken(name)[code], more.spoken(name)[code]) == (UNSEEN, "fr")
    assert few.spoken("ntrex")["de"] == few.spoken("tatoeba")["deu"] == "de"


def test_languages_of_the_experiment_are_the_ones_unless_all_are_asked_for(project):
    value = DIVIDED
    for name in DIVIDED["evalsets"]:
        value = edited(value, f"evalsets.{name}.languages", GONE)
    found = {name: entry.languages for name, entry in project.load(value).evalsets.items()}
    assert found == {
        "tatoeba": {"deu": "de", "jpn": "ja"},
        "flores200": {"eng_Latn": "en", "deu_Latn": "de", "jpn_Jpan": "ja"},
        "sib200": {"eng_Latn": "en", "deu_Latn": "de", "jpn_Jpan": "ja"},
        "ntrex": {"de": "de", "ja": "ja"},
    }


def test_a_list_of_tatoebas_languages_may_name_some_that_are_not_trained_on(project):
    experiment = project.load(edited(DIVIDED, "evalsets.tatoeba.languages", ["ja", "it", "de"]))
    assert list(experiment.evalsets["tatoeba"].languages) == ["jpn", "ita", "deu"]
    assert experiment.spoken("tatoeba") == {"jpn": "ja", "ita": UNSEEN, "deu": "de"}


def test_a_list_of_tatoebas_languages_names_known_ones_and_one_that_is_trained_on(project):
    told = project.told(edited(DIVIDED, "evalsets.tatoeba.languages", ["it", "fr"]))
    assert "evalsets.tatoeba.languages: found 'it', 'fr', not trained on" in told
    assert "at least one must be: de, ja" in told
    told = project.told(edited(DIVIDED, "evalsets.tatoeba.languages", ["de", "xx"]))
    assert "evalsets.tatoeba.languages: unknown language 'xx'; allowed: " in told
    told = project.told(edited(DIVIDED, "evalsets.sib200.languages", ["de", "it"]))
    assert "evalsets.sib200.languages: unknown language 'it'; allowed: en, de, ja" in told


def test_without_takes_languages_away_from_all_and_from_a_list(project):
    value = edited(DIVIDED, "evalsets.tatoeba.without", ["ja", "eo"])
    value = edited(value, "evalsets.ntrex.without", ["eo", "jv"])
    value = edited(value, "evalsets.flores200", {"version": "v1", "without": ["de"]})
    found = project.load(value).evalsets
    assert "jpn" not in found["tatoeba"].languages
    assert not {"eo", "jv"} & set(found["ntrex"].languages)
    assert len(found["ntrex"].languages) == 59
    assert found["flores200"].languages == {"eng_Latn": "en", "jpn_Jpan": "ja"}


def test_a_language_of_ones_own_is_in_the_benchmarks_whose_codes_it_names(project):
    own = {"code": "xq", "tatoeba_v1": "xqq", "flores200": "xqq_Latn"}
    found = project.load(edited(DIVIDED, "languages", ["en", "de", own])).evalsets
    for name, code in (("tatoeba", "xqq"), ("flores200", "xqq_Latn"), ("ntrex", "xq")):
        assert found[name].languages[code] == "xq"
    assert len(found["tatoeba"].languages) == 113


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

JOBS = {
    "evalkeys": ("evalkeys", {}),
    **{
        f"clean {label} {pair}": (
            "clean",
            {"label": label, "version": version, "pair": pair},
        )
        for label, version in (
            ("Tatoeba", "v2021-08-07"),
            ("NTREX+train", "v1"),
            ("NTREX+validation", "v1"),
        )
        for pair in ("de-en", "en-ja")
    },
    "segment de-en": ("segment", {"pair": "de-en"}),
    "segment en-ja": ("segment", {"pair": "en-ja"}),
    "vocabulary": ("vocabulary", {"vocabulary": "shared"}),
    "train a": ("train", {"system": "a"}),
    **{
        f"bench {system} {benchmark}": ("bench", {"system": system, "benchmark": benchmark})
        for system in ("a", "ngram")
        for benchmark in ("tatoeba", "ntrex")
    },
    "tables": ("tables", {}),
}
BENCH = {name for name in JOBS if name.startswith("bench")}


def changed_jobs(project, before, after):
    """The jobs whose hash differs between two experiment files."""
    one, other = (
        {name: stage_hash(experiment, job, **names) for name, (job, names) in JOBS.items()}
        for experiment in (project.load(before), project.load(after))
    )
    return {name for name in JOBS if one[name] != other[name]}


def test_one_language_more_leaves_the_evaluation_sentences_and_the_other_pairs_alone(project):
    more = edited(DIVIDED, "languages", ["en", "de", "ja", "fr"])
    assert changed_jobs(project, DIVIDED, more) == {"vocabulary", "train a"} | BENCH


def test_a_language_of_ones_own_does_so_too_if_the_benchmark_has_it_already(project):
    """Welsh is among the 112 languages of Tatoeba, but not in the table, and not in NTREX."""
    before = edited(DIVIDED, "evalsets.ntrex.without", ["cy"])
    welsh = {"code": "cy", "tatoeba_v1": "cym"}
    more = edited(before, "languages", ["en", "de", "ja", welsh])
    unmoved = {"bench ngram ntrex"}
    assert changed_jobs(project, DIVIDED, more) == ({"vocabulary", "train a"} | BENCH) - unmoved


CLEAN = {name for name in JOBS if name.startswith("clean")}
OF_NTREX = {name for name in CLEAN if "NTREX" in name}


@pytest.mark.parametrize(
    ("path", "new", "changed"),
    [
        ("corpora.0.fallback", False, set()),
        (
            "splits.NTREX.documents",
            "other.tsv",
            {"evalkeys", "bench a ntrex", "bench ngram ntrex"} | OF_NTREX,
        ),
        (
            "splits.NTREX.parts",
            {"train": 0.4, "validation": 0.2, "test": 0.4},
            {"evalkeys", "bench a ntrex", "bench ngram ntrex"} | OF_NTREX,
        ),
        ("evalsets.flores200.version", "v2", {"evalkeys"}),
        ("evalsets.sib200.without", ["de"], {"evalkeys"}),
        ("evalsets.ntrex.without", ["eo"], {"evalkeys", "bench a ntrex", "bench ngram ntrex"}),
        (
            "evalsets.tatoeba.without",
            ["de"],
            {"evalkeys", "bench a tatoeba", "bench ngram tatoeba"},
        ),
        ("decontaminate.against", ["ntrex"], {"evalkeys"} | CLEAN),
        ("segmenters.fr", "jieba", set()),
    ],
)
def test_an_edit_of_the_data_changes_the_hash_of_the_jobs_that_read_it(project, path, new, changed):
    assert changed_jobs(project, DIVIDED, edited(DIVIDED, path, new)) == changed
