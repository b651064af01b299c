"""Laws of what OPUS has: codes of a language, files of a corpus, what an entry makes of them."""

import gzip
import itertools
import lzma
import sqlite3
from types import SimpleNamespace

import pytest
from made.experiments import REAL, Settings, edited, one_line

from ems.base.errors import EmsError
from ems.config import languages as facts
from ems.config.languages import OpusFile, load_languages, opus_codes, opus_files, opus_releases
from ems.config.stages import stage_settings
from ems.corpora.catalogue import NOISE, catalogue, versions_of
from ems.corpora.opustools import packaged_database, update_table

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


def test_files_are_named_in_the_order_of_their_codes_and_a_release_is_counted_or_not():
    for corpus, versions in opus_releases().items():
        for version in versions:
            files = opus_files(corpus, version)
            assert files
            assert all(name.split("-") == sorted(name.split("-")) for name in files)
            counts = {file.pairs is None for file in files.values()}
            assert len(counts) == 1
            assert counts == {True} or all(file.pairs > 0 for file in files.values())


def test_the_counts_are_those_of_the_reference():
    """A few that were looked up by hand with `opus_get --list --local_db`."""
    assert opus_files("Europarl", "v8")["en-fr"].pairs == 2_051_014
    assert opus_files("OpenSubtitles", "v2018")["en-fr"].kilobytes == 1_265_813
    english = {"Europarl": 20, "UNPC": 5}
    for name, count in english.items():
        files = opus_files(name, opus_releases()[name][-1])
        assert sum("en" in file.split("-") for file in files) == count
    assert opus_releases()["Europarl"] == ("v3", "v7", "v8")
    assert opus_files("Ubuntu", "v14.10")["en-fr"].pairs is None
    assert opus_files("Europarl", "v99") == opus_files("Eurpoarl", "v8") == {}


def test_what_the_catalogue_adds_to_opus_is_not_in_it_and_is_rated():
    for name, known in catalogue().items():
        assert known.noise in NOISE
        assert not set(known.versions) & set(opus_releases().get(name, ()))
        assert versions_of(name)
        assert not known.repeats or known.repeats in catalogue()
        assert "see" not in known.licence


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
    own = {"name": "bible-uedin", "version": "v1", "source": "x", "codes": {"de": ["xx"]}}
    assert corpus(project, own).files("de-en") == ("en-xx",)  # what is not OPUS's is believed


def test_a_corpus_without_a_file_of_a_languages_own_code_has_that_of_its_other_codes(project):
    aligned = corpus(project, {"name": "CCAligned", "version": "v1"})
    assert aligned.files("en-zh") == ("en-zh_CN", "en-zh_TW")
    assert aligned.files("en-nb") == ("en-no",)
    assert corpus(project, {"name": "CCMatrix", "version": "v1"}).files("en-zh") == ("en-zh",)
    one = {"name": "CCAligned", "version": "v1", "codes": {"zh": ["zh_TW"]}}
    assert corpus(project, one).files("en-zh") == ("en-zh_TW",)


def test_an_unknown_corpus_or_version_says_what_may_be_meant(project):
    def value(name, version, **more):
        entry = {"name": name, "version": version, "languages": ["de"], **more}
        return BASE | {"corpora": [entry], "validation": None}

    named = "corpora.0.name: unknown corpus 'CCAlinged'; did you mean CCAligned or MultiCCAligned?"
    assert named in project.error(value("CCAlinged", "v1"))
    newer = "corpora.0.version: unknown version 'v2' of NLLB; allowed: v1 (a newer release"
    assert newer in project.error(value("NLLB", "v2"))
    known = [("NLLB", "v1", {}), ("XLEnt", "v1.1", {}), ("NLLB", "v2", {"source": HOST})]
    for name, version, more in known:
        (entry,) = project.load(value(name, version, **more)).corpora
        assert (entry.name, entry.version, entry.pairs) == (name, version, ("de-en",))


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
NTREX = {"name": "NTREX", "version": "v1"}
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
    (entry(NTREX, codes="paper"), "corpora.0.codes: found paper, but EMS used no NTREX"),
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
        "splits.X: by document (documents, parts), by sentence (sentences, parts) or by position",
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


HOST = "https://object.pouta.csc.fi"
COLUMNS = "source, target, corpus, preprocessing, version, alignment_pairs, size, latest, url"


def database(path, rows):
    """OpusTools' database of (code, code, corpus, form, version, pairs, KB, latest[, address])."""
    with sqlite3.connect(path) as link:
        link.execute(f"CREATE TABLE opusfile (id INTEGER PRIMARY KEY, {COLUMNS})")
        for row in rows:
            first, second, corpus, form, version = row[:5]
            url = f"{HOST}/OPUS-{corpus}/{version}/{form}/{first}-{second}.txt.zip"
            values = row if len(row) == 9 else (*row, url)
            link.execute(f"INSERT INTO opusfile ({COLUMNS}) VALUES ({','.join('?' * 9)})", values)
    return path


ROWS = [
    ("cmn", "en", "Tatoeba", "moses", "v9", 500, 50, "True"),
    ("de", "fr", "Tatoeba", "moses", "v9", 7, 1, "True"),
    ("de", "en", "Tatoeba", "moses", "v9", 600, 60, "True"),
    ("de", "en", "Tatoeba", "xml", "v9", 500, 50, "True"),
    ("de", "en", "Tatoeba", "moses", "v10", 5, 6, "False"),
    ("en", "xx", "Tatoeba", "moses", "v9", 0, 1, "True"),  # no pair in it
    ("en", "cs", "Tatoeba", "moses", "v9", 9, 50, "True"),  # in the wrong order
    ("de", "en", "Old", "moses", "v1", "", 50, "True"),  # none of the release is counted
    ("de", "fr", "Old", "moses", "v1", 0, 51, "True"),
    (
        "de",
        "en",
        "Moved",
        "moses",
        "v1",
        9,
        50,
        "True",
        f"{HOST}/OPUS-Other/v1/moses/de-en.txt.zip",
    ),
]


@pytest.fixture
def remade(tmp_path, monkeypatch):
    """The table of ROWS, in place of OPUS's."""
    path = tmp_path / "opus.db"
    database(path, ROWS)
    packed = tmp_path / "opusdata.db.gz"
    with (
        open(packed, "wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=86_400 * 365) as writer,
    ):
        writer.write(path.read_bytes())
    out = tmp_path / "opus.tsv.xz"
    assert update_table(packed, out) == 6
    monkeypatch.setattr(facts, "TABLE", out)
    forget()
    yield packed
    monkeypatch.undo()
    forget()


def forget():
    facts._lines.cache_clear()
    facts.opus_files.cache_clear()


def test_the_table_is_made_of_the_moses_files_at_their_address_that_have_pairs(remade):
    assert facts.opus_date() == "1971-01-01"  # the day in the packed file
    assert opus_releases() == {"Old": ("v1",), "Tatoeba": ("v10", "v9")}  # the newest last
    assert opus_files("Tatoeba", "v9") == {
        "cmn-en": OpusFile(500, 50),
        "de-en": OpusFile(600, 60),
        "de-fr": OpusFile(7, 1),
    }
    assert opus_files("Old", "v1") == {"de-en": OpusFile(None, 50), "de-fr": OpusFile(None, 51)}
    unpacked = remade.with_name("opus.db")
    again = remade.with_name("again.xz")
    update_table(unpacked, again)
    lines = [lzma.decompress(path.read_bytes()).split(b"\n")[1:] for path in (again, facts.TABLE)]
    assert lines[0] == lines[1]


def test_a_pair_without_english_has_its_files_too():
    assert tuple(facts.opus_pair("MultiCCAligned", "v1.1", "cy", "pl")) == ("cy-pl",)
    assert tuple(facts.opus_pair("MultiCCAligned", "v1.1", "zh", "de")) == ("de-zh_CN", "de-zh_TW")
    assert tuple(facts.opus_pair("TED2020", "v1", "ku", "en")) == ()  # its ku is another language


def test_what_is_no_such_database_is_one_clear_line(tmp_path):
    out = tmp_path / "out.xz"
    with pytest.raises(EmsError, match=r"gone\.db: no such file; expected opusdata"):
        update_table(tmp_path / "gone.db", out)
    (tmp_path / "text.db").write_text("no database, but long enough to be looked at" * 99)
    with pytest.raises(EmsError, match=r"expected OpusTools' SQLite database"):
        update_table(tmp_path / "text.db", out)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"x" * 9999)[:30])
    with pytest.raises(EmsError, match=r"cut\.gz: cannot be unpacked"):
        update_table(tmp_path / "cut.gz", out)
    with pytest.raises(EmsError, match="lists no Moses zips of OPUS"):
        update_table(database(tmp_path / "empty.db", []), out)
    assert not out.exists()


def test_without_a_database_that_of_the_package_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install '.[pipeline]', or give" in one_line(packaged_database)
    (tmp_path / "opusdata.db.gz").touch()
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    assert packaged_database() == tmp_path / "opusdata.db.gz"
