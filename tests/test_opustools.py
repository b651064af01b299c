"""OpusTools: downloads through the package end in a checked file or one line; its database.

The package itself runs with its two hosts answered from memory; a stand-in fails as the package is
known to fail.
"""

import gzip
import io
import json
import lzma
import re
import sqlite3
import sys
import urllib.error
import urllib.request
import urllib.response
from email.message import Message
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from conftest import ROOT, needs
from made.corpora import zipped
from made.experiments import REAL, Settings, edited, one_line

from ems.base.errors import EmsError
from ems.config import languages as facts
from ems.config.languages import OpusFile, opus_files, opus_releases
from ems.corpora.download import Downloads
from ems.corpora.fetch import Release

API = "https://opus.nlpl.eu/opusapi"
STORE = "https://object.pouta.csc.fi/OPUS-"
NAME = "C/v1/moses/de-en.txt.zip"


def moses(lines=3):
    """The bytes of a Moses zip."""
    return zipped((f"C.de-en.{code}", f"{code} text\n" * lines) for code in ("de", "en"))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "data" / "x.zip"


def get(out, corpus="C"):
    downloads = Downloads(slots=out.parent.parent / "slots")
    return Release("moses", "opustools", corpus, "v1", downloads=downloads).fetch("de-en", out)


def files(out):
    return sorted(path.name for path in out.parent.iterdir())


def fails(out, expected, corpus="C"):
    """Fail with one line and leave no file."""
    line = one_line(get, out, corpus)
    assert re.search(expected, line)
    assert files(out) == []
    return line


FAILURES = [  # what the package does (a text: it prints and returns), the error
    ("Unable to retrieve.", r"downloaded 0 files instead of one \(Unable to retrieve\.\)"),
    (urllib.error.URLError("a"), "OpusTools failed"),
    (FileNotFoundError("x"), "OpusTools failed"),
    (KeyError("url"), "OpusTools failed"),
    (SystemExit(), "OpusTools failed"),
]


@pytest.mark.parametrize(("failure", "expected"), FAILURES)
def test_a_failure_is_one_line_and_prints_nothing(monkeypatch, out, failure, expected, capsys):
    def get_files():
        if not isinstance(failure, str):
            raise failure
        print(failure)

    stand_in = SimpleNamespace(OpusGet=lambda **options: SimpleNamespace(get_files=get_files))
    monkeypatch.setitem(sys.modules, "opustools", stand_in)
    assert f"opustools:{NAME}: " in fails(out, expected)
    assert capsys.readouterr().out == ""


def test_a_missing_package_is_named_before_any_job_starts(monkeypatch, tmp_path, out):
    settings = Settings(tmp_path, edited(REAL, "sources", {"opus": "elsewhere"}))
    monkeypatch.setitem(sys.modules, "opustools", None)
    fails(out, "needs the package opustools, which is not installed .*pip install opustools")
    settings.load()
    message = settings.error(edited(REAL, "sources", {"opus": "opustools"}))
    assert "needs the package opustools" in message


class Hosts(urllib.request.HTTPSHandler):
    """The two hosts of OPUS: the API, and the files by name."""

    def __init__(self, files):
        super().__init__()
        self.files, self.asked = files, []

    def https_open(self, request):
        url = request.full_url
        self.asked.append(url)
        if url.startswith(API):
            return self._answer(url, json.dumps({"corpora": self._listed(url)}).encode())
        if url.removeprefix(STORE) in self.files:
            return self._answer(url, self.files[url.removeprefix(STORE)])
        raise urllib.error.HTTPError(url, 404, "gone", Message(), io.BytesIO())

    def _listed(self, url):
        wanted = dict(part.split("=") for part in url.partition("?")[2].split("&") if part)
        if (wanted["corpus"], wanted["version"]) != ("C", "v1"):
            return []
        numbers = ("id", "size", "documents", "alignment_pairs", "source_tokens", "target_tokens")
        own = {"url": STORE + NAME, "version": "v1", "corpus": "C", "preprocessing": "moses"}
        return [{**dict.fromkeys(numbers, 1), **own, "source": "de", "target": "en"}]

    def _answer(self, url, content):
        headers = Message()
        headers["Content-Length"] = str(len(content))
        answer = urllib.response.addinfourl(io.BytesIO(content), headers, url, 200)
        answer.msg = "OK"
        return answer


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    needs(find_spec("opustools"), "the package opustools")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # where it keeps its database
    handler = Hosts({NAME: moses()})
    urllib.request.install_opener(urllib.request.build_opener(handler))
    yield handler
    urllib.request.install_opener(None)


def test_a_file_from_the_package_is_checked_and_locked(hosts, out):
    left = out.with_name(".x.zip.opustools.ems.part")  # by a killed run
    left.mkdir(parents=True)
    (left / "C_v0_moses_de-en.txt.zip").write_bytes(moses(9))
    entry = get(out)
    assert out.read_bytes() == moses()
    assert (entry["pairs"], entry["url"]) == (3, f"opustools:{NAME}")
    assert hosts.asked[0].startswith(API)
    assert hosts.asked[-1] == STORE + NAME
    assert files(out) == ["x.zip", "x.zip.lock.json"]
    hosts.files = {NAME: moses(4)}
    with pytest.raises(EmsError, match=rf"opustools:{NAME}: .*the source changed"):
        get(out)
    assert out.read_bytes() == moses()


BAD = [
    ("D", moses(), "downloaded 0 files instead of one"),  # OPUS does not have it
    ("C", None, "downloaded 0 files instead of one|OpusTools failed"),  # it is gone
    ("C", b"<!DOCTYPE html><html></html>", "not a zip archive, found a web page"),
    ("C", moses()[:-20], "not a zip archive"),
]


@pytest.mark.parametrize(("corpus", "content", "expected"), BAD)
def test_a_bad_file_from_the_package_is_one_line(hosts, out, corpus, content, expected):
    hosts.files = {} if content is None else {NAME: content}
    fails(out, expected, corpus)


# --- the table of OPUS's files
HOST = "https://object.pouta.csc.fi"
COLUMNS = "source, target, corpus, preprocessing, version, alignment_pairs, size, latest, url"


def database(path, rows):
    """OpusTools' database of (code, code, corpus, form, version, pairs, KB[, address])."""
    with sqlite3.connect(path) as link:
        link.execute(f"CREATE TABLE opusfile (id INTEGER PRIMARY KEY, {COLUMNS})")
        for row in rows:
            first, second, corpus, form, version = row[:5]
            url = f"{HOST}/OPUS-{corpus}/{version}/{form}/{first}-{second}.txt.zip"
            values = (*row[:7], str(version != "v10"), *(row[7:] or [url]))
            link.execute(f"INSERT INTO opusfile ({COLUMNS}) VALUES ({','.join('?' * 9)})", values)
    return path


ROWS = [
    ("cmn", "en", "Tatoeba", "moses", "v9", 500, 50),
    ("de", "fr", "Tatoeba", "moses", "v9", 7, 1),
    ("de", "en", "Tatoeba", "moses", "v9", 600, 60),
    ("de", "en", "Tatoeba", "xml", "v9", 500, 50),
    ("de", "en", "Tatoeba", "moses", "v10", 5, 6),  # not the latest
    ("en", "xx", "Tatoeba", "moses", "v9", 0, 1),  # no pair in it
    ("en", "cs", "Tatoeba", "moses", "v9", 9, 50),  # codes not sorted
    ("de", "en", "Old", "moses", "v1", "", 50),  # a release without counts
    ("de", "fr", "Old", "moses", "v1", 0, 51),
    ("de", "en", "Moved", "moses", "v1", 9, 50, f"{HOST}/OPUS-Other/v1/moses/de-en.txt.zip"),
]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "perf"))
    return import_module("opus_table")


@pytest.fixture
def remade(tmp_path, monkeypatch, script, capsys):
    """The table of ROWS, in place of OPUS's."""
    content = database(tmp_path / "opus.db", ROWS).read_bytes()
    packed = tmp_path / "opusdata.db.gz"
    packed.write_bytes(gzip.compress(content, mtime=86_400 * 365))
    out = tmp_path / "opus.tsv.xz"
    monkeypatch.setattr(sys, "argv", ["opus_table", f"--db={packed}", f"--out={out}"])
    script.main()
    assert capsys.readouterr().out == f"{out}: 6 files\n"
    monkeypatch.setattr(facts, "TABLE", out)
    forget()
    yield packed
    monkeypatch.undo()
    forget()


def forget():
    facts._lines.cache_clear()
    facts.opus_files.cache_clear()


def test_the_table_has_the_moses_zips_with_pairs_at_their_address(remade, script):
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
    script.update_table(unpacked, again)
    lines = [lzma.decompress(path.read_bytes()).split(b"\n")[1:] for path in (again, facts.TABLE)]
    assert lines[0] == lines[1]


NO_DATABASE = {  # content (None: no file) -> the message
    None: "no such file; expected opusdata.db.gz",
    b"no database, but long enough to be looked at" * 99: "expected OpusTools' SQLite database",
    gzip.compress(b"some text to pack")[:-9]: "cannot be unpacked",
}


@pytest.mark.parametrize("content", NO_DATABASE)
def test_a_file_that_is_no_database_is_one_line(tmp_path, monkeypatch, script, content):
    path, out = tmp_path / "opus.db", tmp_path / "out.xz"
    if content:
        path.write_bytes(content)
    monkeypatch.setattr(sys, "argv", ["opus_table", f"--db={path}", f"--out={out}"])
    with pytest.raises(SystemExit, match=rf"opus\.db: {NO_DATABASE[content]}"):
        script.main()
    assert not out.exists()


def test_a_database_without_moses_zips_is_one_line(tmp_path, script):
    empty = database(tmp_path / "empty.db", [])
    message = one_line(script.update_table, empty, tmp_path / "out.xz")
    assert "empty.db: lists no Moses zips of OPUS" in message
    assert not (tmp_path / "out.xz").exists()


def test_the_default_database_is_that_of_the_package(tmp_path, monkeypatch, script):
    packaged_database = script.packaged_database
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install '.[pipeline]', or give" in one_line(packaged_database)
    (tmp_path / "opusdata.db.gz").touch()
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    assert packaged_database() == tmp_path / "opusdata.db.gz"
