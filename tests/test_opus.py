"""OPUS's table: codes, files and sizes; what a corpus entry makes of them; `ems corpora list`."""

import itertools
import json

import pytest
from conftest import ROOT
from made import golden
from made.cli import Cli
from made.experiments import REAL, Settings, edited, shipped

from ems.config import languages as facts
from ems.config.languages import load_languages, opus_codes, opus_files, opus_releases
from ems.config.load import load_yaml
from ems.config.stages import stage_settings
from ems.corpora.catalogue import NOISE, catalogue, versions_of
from ems.tables.printed import load_pairs
from ems.workflow.downloads import as_csv, as_json, as_text

TED = {"name": "TED2020", "version": "v1"}
SUBTITLES = {"name": "OpenSubtitles", "version": "v2018"}
BASE = REAL | {"languages": ["en", "de", "zh", "nb", "ja"], "corpora": [TED]}


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, BASE)


def corpus(project, entry, **more):
    return project.load(BASE | {"corpora": [entry], "validation": None} | more).corpora[0]


def test_every_code_of_the_table_belongs_to_a_file_and_a_known_language():
    releases = {name: [opus_files(name, v) for v in of] for name, of in opus_releases().items()}
    files = itertools.chain(*itertools.chain(*releases.values()))
    codes = set(itertools.chain(*(file.split("-") for file in files)))
    for corpus, language, code in facts.opus_language_codes():
        assert language in load_languages()
        if corpus == facts.ANY:
            assert code in codes
        elif code != facts.NOTHING:
            file = "-".join(sorted(("en", code)))
            assert any(file in files for files in releases[corpus]), (corpus, language, code)


def test_file_names_are_sorted_and_a_release_has_all_counts_or_none():
    for corpus, versions in opus_releases().items():
        for version in versions:
            files = opus_files(corpus, version)
            assert files
            assert all(name.split("-") == sorted(name.split("-")) for name in files)
            counts = {file.pairs is None for file in files.values()}
            assert len(counts) == 1
            assert counts == {True} or all(file.pairs > 0 for file in files.values())


def test_the_counts_equal_opus_get_list():
    assert opus_files("Europarl", "v8")["en-fr"].pairs == 2_051_014
    assert opus_files("OpenSubtitles", "v2018")["en-fr"].kilobytes == 1_265_813
    english = {"Europarl": 20, "UNPC": 5}
    for name, count in english.items():
        files = opus_files(name, opus_releases()[name][-1])
        assert sum("en" in file.split("-") for file in files) == count
    assert opus_releases()["Europarl"] == ("v3", "v7", "v8")
    assert opus_files("Ubuntu", "v14.10")["en-fr"].pairs is None
    assert opus_files("Europarl", "v99") == opus_files("Eurpoarl", "v8") == {}


def test_the_catalogue_adds_rated_corpora_and_versions_that_opus_lacks():
    for name, known in catalogue().items():
        assert known.noise in NOISE
        assert not set(known.versions) & set(opus_releases().get(name, ()))
        assert versions_of(name)
        assert not known.repeats or known.repeats in catalogue()
        assert "see" not in known.licence


def test_a_language_has_the_codes_of_the_table_or_its_own():
    assert opus_codes("Europarl", "de") == ("de",)
    assert opus_codes("GlobalVoices", "ja") == ("jp",)
    assert opus_codes("TED2020", "ku") == opus_codes("TED2020", "ku", paper=True) == ()
    assert tuple(facts.opus_pair("MultiCCAligned", "v1.1", "cy", "pl")) == ("cy-pl",)
    assert tuple(facts.opus_pair("MultiCCAligned", "v1.1", "zh", "de")) == ("de-zh_CN", "de-zh_TW")
    assert tuple(facts.opus_pair("TED2020", "v1", "ku", "en")) == ()  # its ku is another language


# --- a corpus entry
OWN = {"source": "x", "codes": {"de": ["xx"]}}  # not checked against OPUS's table
FILES = [  # corpus, release, further keys: language pairs (default: all), files
    ("UNPC", "v1.0", {}, {"en-zh": ["en-zh"]}),
    ("TED2020", "v1", {}, {"en-zh": ["en-zh_cn", "en-zh_tw", "en-zh"]}),
    (*("OpenSubtitles", "v2018", {}), {"en-zh": ["en-zh_cn", "en-zh_tw"], "en-nb": ["en-no"]}),
    ("OpenSubtitles", "v2018", {"codes": {"zh": ["zh_tw"]}}, {"en-zh": ["en-zh_tw"]}),
    ("OpenSubtitles", "v2018", {"codes": "paper"}, {"de-en": ["de-en"]}),
    ("Tatoeba", "v2022-03-03", {}, {"en-zh": ["cmn-en"]}),
    ("Tatoeba", "v2021-08-07", {}, {"en-zh": ["en-zh"]}),  # not listed: may have every language
    ("bible-uedin", "v1", OWN, {"de-en": ["en-xx"]}),
    ("CCAligned", "v1", {}, {"en-zh": ["en-zh_CN", "en-zh_TW"], "en-nb": ["en-no"]}),
    ("CCAligned", "v1", {"codes": {"zh": ["zh_TW"]}}, {"en-zh": ["en-zh_TW"]}),
    ("CCMatrix", "v1", {}, {"en-zh": ["en-zh"]}),
]
PAIRS = {"UNPC": ("en-zh",), "paper": ("de-en", "en-zh", "en-ja")}


@pytest.mark.parametrize(("name", "version", "more", "files"), FILES)
def test_a_language_has_the_files_of_its_codes_in_this_corpus(project, name, version, more, files):
    entry = corpus(project, {"name": name, "version": version, **more})
    assert {pair: list(entry.files(pair)) for pair in files} == files
    key = "paper" if more.get("codes") == "paper" else name
    assert entry.pairs == PAIRS.get(key, ("de-en", "en-zh", "en-nb", "en-ja"))
    if version == "v2022-03-03":  # has Welsh, and no xq
        own = {"languages": ["en", "de", {"code": "cy"}, {"code": "xq"}]}
        assert corpus(project, {"name": name, "version": version}, **own).pairs == (
            "de-en",
            "cy-en",
        )


def test_an_unknown_corpus_or_version_is_an_error_with_similar_names(project):
    def value(name, version, **more):
        entry = {"name": name, "version": version, "languages": ["de"], **more}
        return BASE | {"corpora": [entry], "validation": None}

    named = "corpora.0.name: unknown corpus 'CCAlinged'; did you mean CCAligned or MultiCCAligned?"
    assert named in project.error(value("CCAlinged", "v1"))
    newer = "corpora.0.version: unknown version 'v2' of NLLB; allowed: v1 (a newer release"
    assert newer in project.error(value("NLLB", "v2"))
    for name, version, more in (("XLEnt", "v1.1", {}), ("NLLB", "v2", {"source": "https://host"})):
        assert project.load(value(name, version, **more)).corpora[0].pairs == ("de-en",)


def test_caps_may_differ_by_language(project):
    entry = {"name": "UNPC", "version": "v1.0", "max_pairs": {"default": 7, "zh": 9, "ru": 5}}
    files = corpus(project, entry, languages=["en", "zh", "ar"])
    assert [files.cap(pair) for pair in files.pairs] == [9, 7]
    assert corpus(project, {**TED, "max_pairs": 4}).cap("de-en") == 4
    only = corpus(project, {**TED, "max_pairs": {"zh": 4}})
    assert (only.cap("de-en"), only.cap("en-zh")) == (None, 4)


WIKI = {"name": "WikiMatrix", "version": "v1"}
FIRST = {"WikiMatrix": {"first": {"validation": 1000}, "rest": "train"}}
NTREX = {"name": "NTREX", "version": "v1"}
DIVIDED = {"first": {"a": 1}, "rest": "b", "documents": "d"}


def entry(corpus, languages=None, **more):
    """Edits that make this the first corpus of an experiment."""
    return {"corpora.0": corpus | more} | ({"languages": languages} if languages else {})


FIRST_PART = {"splits": FIRST, "validation": {**WIKI, "part": "validation"}}
MISTAKES = [
    (entry(TED | {"languages": ["yo"]}, ["en", "yo"]), "corpora.0.languages: TED2020 v1 has no yo"),
    (entry(SUBTITLES, ["en", "nb"], codes="paper"), "has no nb", "that EMS used (codes: paper)"),
    (entry(TED, codes={"zh": ["zh_hk"]}), "TED2020 v1 has no file en-zh_hk; it has: ", "en-zh_cn"),
    (entry(TED, codes={"xx": ["a"]}), "corpora.0.codes: unknown language 'xx'"),
    (entry(TED, codes="papers"), "corpora.0.codes: found 'papers'", "paper"),
    (entry(NTREX, codes="paper"), "corpora.0.codes: found paper, but EMS used no NTREX"),
    (entry(TED, codes={"de": ["zh_cn"]}), "corpora.0: the file en-zh_cn would be both de and zh"),
    (entry(TED, max_pairs=0), "corpora.0.max_pairs: 0", "minimum of 1"),
    (entry(TED, max_pairs={"xx": 1}), "corpora.0.max_pairs: unknown language 'xx'"),
    (
        entry(TED, format="mined", threshold=1),
        "corpora.0.format: only WikiMatrix has the format mined",
    ),
    (entry(WIKI, format="mined"), "corpora.0.threshold: this key is missing"),
    (entry(WIKI, threshold=1.1), "corpora.0.threshold: only pairs of `format: mined` have scores"),
    (
        {"splits": FIRST} | entry(WIKI, part="test"),
        "corpora.0.part: found 'test'; allowed values: ",
    ),
    ({"splits": {"X": {"first": {"a": 9}, "rest": "a"}}}, "splits.X.rest: a is one of the first"),
    ({"splits": {"X": {"first": {"a": 1}}}}, "splits.X.rest: this key is missing"),
    ({"splits": {"X": DIVIDED}}, "splits.X: divide by document (documents, parts), by sentence ("),
    (
        FIRST_PART | entry(WIKI, part="train", format="mined", threshold=1.1),
        "corpora: the parts of WikiMatrix must have the same source",
    ),
    (
        {
            "splits": {"NTREX": {"first": {"test": 9}, "rest": "train"}},
            "validation": NTREX | {"part": "train"},
            "evalsets.ntrex": {"version": "v1", "part": "test"},
        },
        "evalsets.ntrex.part: a benchmark can only be divided by document",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[1])
def test_a_mistake_is_one_line_with_the_allowed_values(project, mistake):
    edits, *parts = mistake
    value = BASE
    for path, new in edits.items():
        value = edited(value, path, new)
    message = project.error(value)
    for part in parts:
        assert part in message


def test_codes_caps_and_thresholds_are_in_the_settings_of_their_job_only(project):
    names = {"label": "WikiMatrix", "version": "v1", "pair": "en-nb"}

    def settings(**more):
        value = BASE | {"corpora": [{**WIKI, **more}], "validation": None}
        return stage_settings(project.load(value), "clean", **names)

    plain = settings()
    assert plain["files"] == ("en-no",)
    assert "threshold" not in plain
    assert settings(max_pairs={"nb": 5})["max_pairs"] == 5
    assert settings(format="mined", threshold=1.2)["threshold"] == 1.2
    assert settings(max_pairs={"de": 5}) == plain
    assert settings(codes={"zh": ["zh"]}) == plain


# --- `ems corpora list`
OWN_TEXT = {"name": "Mine", "version": "1", "source": "x", "languages": ["de"]}
OWN_DOCUMENTS = {"name": "Own", "version": "v1", "kind": "documents", "source": "x"}
UNPC = {"name": "UNPC", "version": "v1.0"}
MINED = {**WIKI, "format": "mined", "threshold": 1.075, "languages": ["de"]}
DRAWN = {"paracrawl": {"version": "v5"}, "europarlxsr": {"version": "v9"}}  # v9 is not in the table
ALONE = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}, "context": {"weight": 1}}
LISTS = {
    "caps and sets": {
        "corpora": [{**TED, "max_pairs": {"zh": 9_000}}, UNPC, OWN_TEXT],
        "evalsets": REAL["evalsets"] | DRAWN,
    },
    "parts": {
        "corpora": [{**WIKI, "languages": ["de"], "part": "train"}],
        "validation": {**WIKI, "languages": ["de"], "part": "validation"},
        "splits": FIRST,
    },
    "mined": {"corpora": [MINED, OWN_DOCUMENTS]},
    "documents": {"corpora": [OWN_DOCUMENTS], "objectives": ALONE},
}


def test_unknown_sizes_are_never_zero_and_capped_or_shared_files_count_once(tmp_path):
    base = REAL | {"languages": ["en", "de", "zh", {"code": "xq"}], "validation": None}
    blocks = []
    for name, value in LISTS.items():
        experiment = Settings(tmp_path / name, base | value).load()
        total = json.dumps(json.loads(as_json(experiment))["total"], indent=1)
        blocks += [f"# {name}", as_text(experiment), as_csv(experiment), total]
    golden.check("corpora_list.txt", "\n\n".join(blocks) + "\n")


def test_the_paper_experiment_has_all_corpora_and_comes_close_to_table_one():
    whole = json.loads(as_json(shipped("ems62")))
    corpora = "Europarl GlobalVoices News-Commentary OpenSubtitles TED2020 UNPC WikiMatrix+train"
    corpora += " Tatoeba WikiMatrix+validation"
    assert [row["corpus"] for row in whole["corpora"]] == corpora.split()
    rows = {row["language"]: row for row in whole["languages"]}
    assert set(rows) == set(load_pairs())
    train = whole["total"]["train"]
    assert train["used"] < whole["table_1_total"] < train["at_most"]
    for language in ("eu", "ka", "kk", "hy", "mn", "et", "lv"):  # no WikiMatrix to speak of
        row = rows[language]
        assert abs(row["used"] - row["table_1"]) < 0.05 * row["table_1"], row
    (paracrawl,) = whole["evalsets"]  # how much retrieval downloads stands in the settings
    assert (paracrawl["evalset"], paracrawl["files"]) == ("paracrawl", 21)
    gigabytes = f"{paracrawl['kilobytes'] / 1e6:.1f} GB"
    assert gigabytes in (ROOT / "configs/ems62.yaml").read_text()


def test_starter_states_its_downloads_and_needs_only_python():
    experiment = shipped("starter")
    text = load_yaml(ROOT / "configs/starter.yaml")["description"]
    total = json.loads(as_json(experiment))["total"]
    words = f"{total['used']:,} sentence pairs in {total['files']} files"
    assert (words in " ".join(text.split()), total["unknown"]) == (True, 0)
    assert f"({total['kilobytes'] / 1000:.0f} MB)" in text
    assert set(experiment.segmenters.values()) == {"unicode"}
    assert len({language.script for language in experiment.languages.values()}) == 6


def test_the_command_prints_text_json_and_csv(tmp_path):
    ems, tiny = Cli(tmp_path), shipped("tiny")
    job = ("corpora", "list", "--experiment", "tiny")
    for flags, form in ((), as_text), (("--json",), as_json), (("--csv",), as_csv):
        assert ems.run(*job, *flags)[0] == form(tiny)
    assert "expected nothing more, found cy" in ems.error("corpora", "update", "cy")
