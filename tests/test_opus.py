"""Laws of what OPUS has: codes of a language, files of a corpus, what an entry makes of them."""

import sqlite3

import pytest
from experiments_made import REAL, Settings, edited

from ems.config import stage_settings
from ems.corpora.catalogue import catalogue
from ems.corpora.opus_database import update_facts
from ems.errors import EmsError
from ems.languages import load_languages
from ems.languages import opus as facts
from ems.languages.opus import opus_codes, opus_files

TED = {"name": "TED2020", "version": "v1"}
SUBTITLES = {"name": "OpenSubtitles", "version": "v2018"}
BASE = REAL | {"languages": ["en", "de", "zh", "nb", "ja"], "corpora": [TED]}


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, BASE)


def corpus(project, entry, **more):
    return project.load(BASE | {"corpora": [entry], "validation": None} | more).corpora[0]


# --- the tables


def test_every_code_of_the_table_is_a_file_of_its_corpus_and_of_a_known_language():
    counted = {name: known.counted for name, known in catalogue().items()}
    for (name, language), codes in facts._codes().items():
        assert language in load_languages()
        for code in codes:
            if code.code != facts.NOTHING:
                file = "-".join(sorted(("en", code.code)))
                assert file in opus_files(name, counted[name]), (name, language, code)


def test_each_counted_release_has_files_named_in_the_order_of_their_codes_and_no_other_has():
    counted = {(name, known.counted) for name, known in catalogue().items() if known.counted}
    assert set(facts._files()) == counted
    assert all(
        known.versions and known.counted in ("", *known.versions) for known in catalogue().values()
    )
    for name, file in [item for files in facts._files().values() for item in files.items()]:
        assert name.split("-") == sorted(name.split("-"))
        assert "en" in name.split("-")
        assert file.pairs > 0


def test_the_counts_are_those_of_the_reference():
    """A few that were looked up by hand with `opus_get --list --local_db`."""
    assert opus_files("Europarl", "v8")["en-fr"].pairs == 2_051_014
    assert opus_files("OpenSubtitles", "v2018")["en-fr"].kilobytes == 1_265_813
    assert len(opus_files("Europarl", "v8")) == 20
    assert len(opus_files("UNPC", "v1.0")) == 5
    assert opus_files("Europarl", "v7") == {}


def test_a_language_has_the_codes_of_the_table_or_its_own():
    assert opus_codes("Europarl", "de") == ("de",)
    assert opus_codes("OpenSubtitles", "zh") == ("zh_cn", "zh_tw")
    assert opus_codes("GlobalVoices", "ja") == ("jp",)
    assert opus_codes("OpenSubtitles", "nb") == ("no",)
    assert opus_codes("OpenSubtitles", "nb", paper=True) == ()
    assert opus_codes("TED2020", "ku") == opus_codes("TED2020", "ku", paper=True) == ()


# --- what an entry makes of them


def test_an_entry_without_languages_takes_those_that_the_corpus_has(project):
    few = corpus(project, {"name": "UNPC", "version": "v1.0"})
    assert few.pairs == ("en-zh",)
    assert few.variants == {}
    assert corpus(project, TED).pairs == ("de-en", "en-zh", "en-nb", "en-ja")


def test_a_language_has_the_files_of_all_its_codes_in_order(project):
    files = corpus(project, SUBTITLES)
    assert files.pairs == ("de-en", "en-zh", "en-nb", "en-ja")
    assert files.files("en-zh") == ("en-zh_cn", "en-zh_tw")
    assert files.files("en-nb") == ("en-no",)
    assert files.files("de-en") == ("de-en",)
    tatoeba = corpus(project, {"name": "Tatoeba", "version": "v2022-03-03"})
    assert tatoeba.files("en-zh") == ("cmn-en",)


def test_the_codes_of_an_entry_win_over_the_tables(project):
    chosen = corpus(project, {**SUBTITLES, "codes": {"zh": ["zh_tw"]}})
    assert chosen.files("en-zh") == ("en-zh_tw",)
    assert chosen.files("en-nb") == ("en-no",)
    paper = corpus(project, {**SUBTITLES, "codes": "paper"})
    assert paper.pairs == ("de-en", "en-zh", "en-ja")
    own = {"name": "bible-uedin", "version": "v1", "languages": ["de"], "codes": {"de": ["xx"]}}
    assert corpus(project, own).files("de-en") == ("en-xx",)  # what is not listed is believed


def test_a_corpus_whose_files_are_not_listed_is_expected_to_have_all_languages(project):
    unlisted = corpus(project, {"name": "Tatoeba", "version": "v2021-08-07"})
    assert unlisted.pairs == ("de-en", "en-zh", "en-nb", "en-ja")
    assert unlisted.variants == {}
    own = ["en", "de", {"code": "cy"}, {"code": "xq"}]  # the corpus has the one, not the other
    listed = corpus(project, {"name": "Tatoeba", "version": "v2022-03-03"}, languages=own)
    assert listed.pairs == ("de-en", "cy-en")


def test_caps_may_differ_by_language(project):
    entry = {"name": "UNPC", "version": "v1.0", "max_pairs": {"default": 7, "zh": 9, "ru": 5}}
    files = corpus(project, entry, languages=["en", "zh", "ar"])
    assert [files.cap(pair) for pair in files.pairs] == [9, 7]
    assert corpus(project, {**TED, "max_pairs": 4}).cap("de-en") == 4
    only = corpus(project, {**TED, "max_pairs": {"zh": 4}})
    assert (only.cap("de-en"), only.cap("en-zh")) == (None, 4)


WIKI = {"name": "WikiMatrix", "version": "v1"}
FIRST = {"WikiMatrix": {"first": {"validation": 1000}, "rest": "train"}}
TICO = {"name": "tico-19", "version": "v2020-10-28"}
DIVIDED = {"first": {"a": 1}, "rest": "b", "documents": "d"}


def entry(corpus, languages=None, **more):
    """Edits that make this the first corpus of an experiment."""
    return {"corpora.0": corpus | more} | ({"languages": languages} if languages else {})


MISTAKES = [
    (
        entry(TED | {"languages": ["de", "yo"]}, ["en", "de", "yo"]),
        "corpora.0.languages: TED2020 v1 has no yo with English; it has: af, ar, bg",
    ),
    (entry(SUBTITLES, ["en", "nb"], codes="paper"), "has no nb", "that EMS used (codes: paper)"),
    (
        entry(TED, codes={"zh": ["zh_hk"]}),
        "corpora.0.codes.zh: TED2020 v1 has no file en-zh_hk; it has: ",
        "en-zh_cn",
    ),
    (entry(TED, codes={"xx": ["a"]}), "corpora.0.codes: unknown language 'xx'"),
    (entry(TED, codes="papers"), "corpora.0.codes: found 'papers'", "paper"),
    (entry(TICO, codes="paper"), "corpora.0.codes: found paper, but EMS used no tico-19"),
    (
        entry(TED, codes={"de": ["zh_cn"]}),
        "corpora.0: the file en-zh_cn would be both de and zh; say which codes are whose",
    ),
    (entry(TED, max_pairs=0), "corpora.0.max_pairs: 0", "minimum of 1"),
    (entry(TED, max_pairs={"xx": 1}), "corpora.0.max_pairs: unknown language 'xx'"),
    (
        entry(TED, format="mined", threshold=1),
        "corpora.0.format: mined is the format of WikiMatrix alone",
    ),
    (entry(WIKI, format="mined"), "corpora.0.threshold: this key is missing"),
    (entry(WIKI, threshold=1.1), "corpora.0.threshold: only pairs of `format: mined` have scores"),
    (
        {"splits": FIRST} | entry(WIKI, part="test"),
        "corpora.0.part: found 'test'; allowed values: validation, train (splits.WikiMatrix)",
    ),
    (
        {"splits": {"WikiMatrix": {"first": {"train": 9}, "rest": "train"}}},
        "splits.WikiMatrix.rest: train is one of the first parts already",
    ),
    ({"splits": {"X": {"first": {"a": 1}}}}, "splits.X.rest: this key is missing"),
    (
        {"splits": {"X": DIVIDED}},
        "splits.X: by document (documents, parts) or by position (first, rest)?",
    ),
    (
        {"splits": FIRST, "validation": {**WIKI, "part": "validation"}}
        | entry(WIKI, part="train", format="mined", threshold=1.1),
        "corpora: the parts of WikiMatrix must have the same source",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[1])
def test_a_mistake_is_one_line_that_says_what_there_is(project, mistake):
    edits, *parts = mistake
    value = BASE
    for path, new in edits.items():
        value = edited(value, path, new)
    message = project.error(value)
    for part in parts:
        assert part in message


def test_the_part_of_a_benchmark_is_by_document_only(project):
    value = BASE | {
        "splits": {"NTREX": {"first": {"test": 9}, "rest": "train"}},
        "validation": {"name": "NTREX", "version": "v1", "part": "train"},
        "evalsets": BASE["evalsets"] | {"ntrex": {"version": "v1", "part": "test"}},
    }
    assert "evalsets.ntrex.part: a benchmark is divided by document" in project.error(value)


def test_mined_pairs_come_from_their_own_source(project):
    mined = {**WIKI, "format": "mined", "threshold": 1.1}
    files = corpus(project, mined, sources={"wikimatrix": "w"})
    assert (files.source, files.mined, files.threshold) == ("w", True, 1.1)
    assert corpus(project, WIKI).source == "o"
    assert corpus(project, {**mined, "source": "mine"}).source == "mine"


def test_what_a_job_reads_of_codes_caps_and_scores_is_in_its_settings(project):
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


# --- the table of files, made again


def database(path, rows):
    columns = "source, target, corpus, preprocessing, version, size, alignment_pairs, url"
    with sqlite3.connect(path) as link:
        link.execute(f"CREATE TABLE opusfile (id INTEGER PRIMARY KEY, {columns})")
        marks = ", ".join("?" * 8)
        link.executemany(f"INSERT INTO opusfile ({columns}) VALUES ({marks})", rows)
    return path


def releases():
    for name, known in catalogue().items():
        if known.counted:
            yield ("en", "fr", name, "moses", known.counted, 70, 700, "u")


def test_the_table_is_made_of_the_moses_files_with_english_of_the_counted_releases(tmp_path):
    more = [
        ("cmn", "en", "Tatoeba", "moses", "v2022-03-03", 50, 500, "u"),
        ("de", "fr", "Tatoeba", "moses", "v2022-03-03", 50, 500, "u"),
        ("de", "en", "Tatoeba", "xml", "v2022-03-03", 50, 500, "u"),
        ("de", "en", "Tatoeba", "moses", "v2", 50, 500, "u"),
        ("en", "xx", "Tatoeba", "moses", "v2022-03-03", 1, 0, "u"),  # no pair in it
        ("en", "", "Tatoeba", "mono", "v2022-03-03", 50, None, "u"),
        ("en", "cs", "Tatoeba", "moses", "v2022-03-03", 50, 9, "u"),  # in the wrong order
        ("en", "en", "Tatoeba", "moses", "v2022-03-03", 50, 9, "u"),
    ]
    path = database(tmp_path / "opus.db", [*releases(), *more])
    count = update_facts(path, tmp_path / "opus.tsv")
    lines = (tmp_path / "opus.tsv").read_text().splitlines()
    assert lines[0] == "corpus\tversion\tfile\tpairs\tkilobytes"
    assert [line for line in lines if line.startswith("Tatoeba")] == [
        "Tatoeba\tv2022-03-03\tcmn-en\t500\t50",
        "Tatoeba\tv2022-03-03\ten-fr\t700\t70",
    ]
    assert count == len(lines) - 1 == len(list(releases())) + 1


def test_what_is_no_such_database_is_one_clear_line(tmp_path):
    with pytest.raises(EmsError, match=r"gone\.db: no such file; it is opusdata"):
        update_facts(tmp_path / "gone.db", tmp_path / "out.tsv")
    (tmp_path / "text.db").write_text("no database, but long enough to be looked at" * 99)
    with pytest.raises(EmsError, match=r"expected OpusTools' SQLite database .*unpack"):
        update_facts(tmp_path / "text.db", tmp_path / "out.tsv")
    path = database(tmp_path / "empty.db", [])
    with pytest.raises(EmsError, match="no Moses files of Europarl v8 with English"):
        update_facts(path, tmp_path / "out.tsv")
    assert not (tmp_path / "out.tsv").exists()
