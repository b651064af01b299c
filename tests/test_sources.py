"""The user's own text in every form, and directories as sources, checked before any job."""

import gzip
import json
import re
from itertools import product
from pathlib import Path

import pytest
import yaml
from conftest import copy_project
from made.corpora import DOCUMENTS, FORMS, packed, write_form
from made.experiments import REAL, Settings, edited
from made.forked import growth
from made.text import cleaned, tiny

from ems.base.errors import EmsError
from ems.base.texts import LONGEST
from ems.config.experiment import Corpus
from ems.corpora.content import lock_of
from ems.corpora.own import count_own, own_files, read_own
from ems.text.evalkeys import write_keys
from ems.workflow.plan import plan, plans_jobs

ROWS = [("Guten Tag", "Bonjour"), ("Zwei „Wörter“", "deux « mots »"), ("Ja\u2028nein", "oui")]


def corpus(files, pair="de-fr", **more):
    paths = {pair: (files,) if isinstance(files, str) else tuple(files)}
    return Corpus("Mine", "own", "", True, (pair,), None, paths=paths, **more)


def clean(folder, own, pair="de-fr", **changes):
    """Clean own text; return (lines, report)."""
    keys = folder / "keys.tsv"
    write_keys({}, keys)
    experiment = tiny(own, decontaminate={"against": []}, **changes)
    return cleaned(experiment, own_files(own, pair), keys, pair)


PACKED = product(("tsv", "two", "jsonl"), (".gz", ".bz2", ".xz", ".zst"))


@pytest.mark.parametrize(("form", "suffix"), [*((form, "") for form in FORMS), *PACKED])
def test_every_form_gives_the_same_rows(tmp_path, form, suffix):
    own = corpus(write_form(tmp_path, form, ("de", "fr"), ROWS, suffix))
    files = own_files(own, "de-fr")
    assert count_own(files) == len(ROWS)
    assert list(read_own(files, ("de", "fr"))) == ROWS


@pytest.mark.parametrize("form", FORMS)
def test_the_key_says_which_language_comes_first(tmp_path, form):
    turned = [(second, first) for first, second in ROWS]
    place = write_form(tmp_path, form, ("fr", "de"), turned)
    own = corpus(place, variants={"de-fr": ("fr-de",)}, turned=frozenset({"fr-de"}))
    lines, report = clean(tmp_path, own)
    assert [line[:2] for line in lines] == [[a.replace("\u2028", " "), b] for a, b in ROWS]
    assert report["kept"] == len(ROWS)


BAD = [
    (b"one column\n", "malformed"),
    (b"three\tcolumns\there\n", "malformed"),
    (b"\n", "malformed"),
    (b"\tno first\n", "one_empty"),
    (b"no second\t \n", "one_empty"),
    (b"\t\n", "both_empty"),
    (b"a NUL\0\there\n", "nul"),
    (b"latin \xe4\there\n", "undecodable"),
    (b"x" * LONGEST + b"\ttoo long\n", "too_long"),
    (b"y" * 3 * LONGEST + b"\tfar too long\n", "too_long"),
]
GOOD = b"".join(b"gut %d\tbon %d\n" % (at, at) for at in range(20))


def test_bad_rows_are_counted_by_reason_with_examples_in_the_log(tmp_path, caplog, logged):
    path = tmp_path / "mine.tsv"
    path.write_bytes(b"".join(row for row, _ in BAD) + GOOD)
    lines, report = clean(tmp_path, corpus(str(path)))
    reasons = [reason for _, reason in BAD]
    assert {reason: n for reason, n in report["removed"].items() if n} == {
        reason: reasons.count(reason) for reason in reasons
    }
    assert report["read"] == len(BAD) + 20 == report["kept"] + len(BAD)
    assert [line[2] for line in lines] == [str(at) for at in range(11, 31)]
    for reason, example in (("malformed", "line 1: 'one column'"), ("undecodable", "latin")):
        assert any(f"removed as {reason}: " in line and example in line for line in caplog.messages)
    assert not any(len(line) > 2000 for line in caplog.messages)
    (line,) = [line for line in caplog.messages if "removed as too_long" in line]
    assert "far too long" not in line


BAD_JSON = {
    **dict.fromkeys((b"{", b"[]", b'{"de": "a"}', b'{"de": "a", "fr": 3}', b"3"), "malformed"),
    b'{"translation": {"de": "a"}}': "malformed",
    b'{"de": "\\ud800", "fr": "b"}': "undecodable",  # a lone surrogate
    b'{"de": null, "fr": "b"}': "one_empty",
}


@pytest.mark.parametrize("line", BAD_JSON)
def test_a_json_row_without_two_texts_is_counted_by_reason(tmp_path, line):
    path = tmp_path / "mine.jsonl"
    good = json.dumps({"de": "gut", "fr": "bon", "more": [1]}).encode()
    path.write_bytes(b"\n".join([b"\xef\xbb\xbf" + good, line, good]))
    _, report = clean(tmp_path, corpus(str(path)))
    assert (report["removed"][BAD_JSON[line]], report["kept"]) == (1, 2)


def test_a_file_of_another_form_is_one_error(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_bytes(b"gut;bon\n" * 9 + GOOD[:20])
    with pytest.raises(EmsError, match="like line 1: 'gut;bon'; expected two"):
        clean(tmp_path, corpus(str(path)))
    assert not (tmp_path / "out.tsv").exists()


def test_a_checksum_is_recorded_and_compared_with_a_lock(tmp_path):
    own = corpus(write_form(tmp_path, "tsv", ("de", "fr"), ROWS, ".gz"))
    (path,) = own_files(own, "de-fr")
    _, report = clean(tmp_path, own)
    (sha256,) = report["sha256"].values()
    lock = {"url": str(path), "bytes": path.stat().st_size, "sha256": sha256}
    lock_of(path).write_text(json.dumps(lock))
    assert clean(tmp_path, own)[1]["sha256"] == {str(path): sha256}
    path.write_bytes(gzip.compress(b"ein\tautre\n"))
    with pytest.raises(EmsError, match="its SHA-256 is not the one in"):
        clean(tmp_path, own)


@pytest.mark.parametrize("change", ["unlink", "grow"])
def test_a_file_that_vanishes_or_grows_meanwhile_is_an_error(tmp_path, change, monkeypatch):
    path = tmp_path / "mine.tsv"
    path.write_bytes(GOOD)

    def meanwhile(*args):
        path.unlink() if change == "unlink" else path.write_bytes(GOOD + GOOD)

    monkeypatch.setattr("ems.text.clean._check_may_be_empty", meanwhile)
    monkeypatch.setattr("ems.text.clean.check_form", meanwhile)
    with pytest.raises(EmsError, match=r"restore this file|changed while it was being read"):
        clean(tmp_path, corpus(str(path)))
    assert not list(tmp_path.glob("*out*"))


def count_twice(path):
    rows = sum(1 for _ in read_own([path], ("de", "fr")))
    assert rows == count_own([path])


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_memory_does_not_grow_with_the_file(tmp_path, suffix):
    path = tmp_path / f"mine.tsv{suffix}"
    line = b"x" * 900 + b"\t" + b"y" * 900 + b"\n"
    path.write_bytes(packed(line * 15_000 + b"z" * 60_000_000, suffix))  # one line of 60 MB
    assert growth(count_twice, path) < 40_000_000  # the file has 87 MB


# --- directories as sources: what they lack is reported before any job, once for all
SOURCES = {name: name for name in ("opus", "wikimatrix", "tatoeba", "flores200", "pawsx")}
VALUE = REAL | yaml.safe_load("""
splits: {NTREX: {documents: DOCUMENT_IDS.tsv, parts: {train: 0.5, test: 0.5}}}
corpora:
  - {name: Tatoeba, version: v2021-08-07}
  - {name: Mine, version: v1, source: mine}
  - {name: WikiMatrix, version: v1, format: mined, threshold: 1.04}
systems: {a: {}, ngram: {kind: char-ngram, ngrams: {idf: false}}}
validation: {name: NTREX, version: v1, part: train}
evalsets:
  {tatoeba: {version: v1}, flores200: {version: v1}, pawsx: {version: v1},
  ntrex: {version: v1, part: test}}
""")
VALUE["sources"] = SOURCES
EXPECTED = {  # file of a source: where it goes below `data`
    "pawsx/x-final.tar.gz": "evalsets/pawsx/v1/x-final.manifest.json"
}
EXPECTED[f"opus/NTREX/v1/{DOCUMENTS}"] = f"opus/NTREX/v1/{DOCUMENTS}"
for pair in ("de-en", "en-ja"):
    for file in ("Tatoeba/v2021-08-07/moses", "NTREX/v1/moses"):
        EXPECTED[f"opus/{file}/{pair}.txt.zip"] = f"opus/{file}/{pair}.txt.zip"
    EXPECTED[f"mine/Mine/v1/moses/{pair}.txt.zip"] = f"opus/Mine/v1/moses/{pair}.txt.zip"
    file = f"WikiMatrix.{pair}.tsv.gz"
    EXPECTED[f"wikimatrix/WikiMatrix/v1/{file}"] = f"opus/WikiMatrix/v1/mined/{file}"
for code, side in (("deu", "deu"), ("deu", "eng"), ("jpn", "jpn"), ("jpn", "eng")):
    file = f"tatoeba/tatoeba.{code}-eng.{side}"
    EXPECTED[file] = f"evalsets/tatoeba/v1/{code}.manifest.json"
for code in ("eng_Latn", "deu_Latn", "jpn_Jpan"):
    EXPECTED[f"flores200/devtest/{code}.devtest"] = f"evalsets/flores200/v1/{code}.manifest.json"
KEYS = {"corpora.1.source": "mine"} | {f"sources.{name}": name for name in SOURCES}


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """An experiment with a source of every kind, none of which exists."""
    monkeypatch.chdir(tmp_path)
    return Settings(tmp_path, VALUE)


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def missing(settings, value=None):
    """The lines of the plan about missing files, by key; the last line is advice."""
    if value:
        settings.write(value)
    *lines, advice = str(plan(root=settings.root).sources).split("\n")
    assert advice.startswith("sources: add the missing files to these directories") == bool(lines)
    return dict(line.split(": ", 1) for line in lines)


def test_every_missing_directory_is_a_line_with_its_key_and_the_expected_files(settings):
    lines = missing(settings)
    assert set(lines) == set(KEYS)
    for key, folder in KEYS.items():
        assert lines[key].startswith(f"{folder} is not a directory; expected {folder}/")
    assert lines["sources.opus"].endswith("opus/NTREX/v1/moses/de-en.txt.zip and 2 more")
    files = plan(root=settings.root).sources.files
    assert files == {Path("data") / place for place in EXPECTED.values()}
    touch(*(settings.root / "data" / place for place in EXPECTED.values()))
    assert missing(settings) == {}  # all fetched: no source is needed


@pytest.mark.parametrize("name", EXPECTED)
def test_each_missing_file_is_named_unless_it_was_fetched(settings, name):
    touch(*(settings.root / other for other in EXPECTED if other != name))
    (settings.root / name).parent.mkdir(parents=True, exist_ok=True)
    ((key, line),) = missing(settings).items()
    assert KEYS[key] == name.partition("/")[0]
    assert re.fullmatch(rf"(1 of \d+ files|file) not found: {re.escape(name)}", line)
    assert plan(root=settings.root).sources.files == {Path("data") / EXPECTED[name]}
    touch(settings.root / "data" / EXPECTED[name])
    assert missing(settings) == {}


def test_addresses_and_embedded_data_are_not_checked(settings):
    value = edited(VALUE, "sources", dict.fromkeys(VALUE["sources"], "https://nowhere.invalid"))
    value = edited(value, "corpora.1.source", "embedded")
    assert missing(settings, edited(value, "sources.flores200", "embedded")) == {}


def test_the_source_of_a_corpus_and_the_path_of_a_set_take_precedence(settings):
    lines = missing(settings, edited(VALUE, "validation.source", "news"))
    assert "NTREX" not in lines["sources.opus"]
    assert lines["validation.source"].endswith(f"en-ja.txt.zip, news/NTREX/v1/{DOCUMENTS}")
    value = edited(VALUE, "evalsets.pawsx.path", "copy")
    settings.write(edited(value, "evalsets.tatoeba.path", "other"))
    with pytest.raises(EmsError) as error:
        plan(root=settings.root, jobs=True)
    keys = [line.partition(":")[0] for line in str(error.value).split("\n")]
    assert keys[:2] == ["evalsets.tatoeba.path", "evalsets.pawsx.path"]
    assert set(keys[2:]) == set(KEYS) - {"sources.pawsx", "sources.tatoeba"}


def test_sources_are_checked_only_if_snakemake_plans_jobs():
    for word in ("--unlock", "--touch", "--report", "--lint", "--summary"):
        assert not plans_jobs(["snakemake", word])
    for words in (["-n", "all"], ["--dry-run"], ["all"], ["--profile", "slurm"]):
        assert plans_jobs(["snakemake", *words])


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with that experiment and only the sources of Tatoeba and Mine."""
    project = copy_project(tmp_path_factory.mktemp("sources") / "project")
    Settings(project.folder, VALUE)
    names = [name for name in EXPECTED if name.startswith(("tatoeba/", "mine/"))]
    touch(*(project.folder / name for name in names))
    return project


LACKING = set(KEYS) - {"sources.tatoeba", "corpora.1.source"}


@pytest.mark.slow
@pytest.mark.parametrize("words", [["-n", "--", "all"], ["--", "data"]])
def test_ems_check_and_snakemake_name_all_missing_sources_before_any_job(project, words):
    done = project.run("ems", "check", "--experiment", "mine", expect=1)
    *lines, last = [line.partition(" ")[2] for line in done.stderr.splitlines()[1:]]
    assert {line.partition(":")[0] for line in lines} == LACKING
    assert last.startswith("error: sources: add the missing files to these directories")
    output = project.snakemake("--config", "experiment=mine", *words, expect=1)
    for key in LACKING:
        assert output.count(f"{key}: {KEYS[key]} is not a directory; expected {KEYS[key]}/") == 1
    assert "localrule" not in output
    assert not [*project.folder.glob("data/*")]  # no job has run


@pytest.mark.slow
def test_a_target_that_needs_no_missing_source_is_planned(project):
    of_all = ("--config", "experiment=mine")
    plan = project.snakemake(*of_all, "-n", "--", "results/mine/scores/ngram/tatoeba.json")
    assert "rule fetch_evalset:" in plan
    project.snakemake(*of_all, "--unlock")
