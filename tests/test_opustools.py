"""Laws of the second way to OPUS: whatever OpusTools does ends in a checked file or in one line.

The tests marked `real` run the package itself, with its two hosts answered from memory; the others
run a stand-in that fails as the package is known to fail.
"""

import io
import json
import re
import sys
import urllib.error
import urllib.request
import urllib.response
from email.message import Message
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from conftest import needs
from made.corpora import zipped
from made.experiments import REAL, Settings, edited, one_line

from ems.base.errors import EmsError
from ems.corpora.download import Downloads
from ems.corpora.fetch import fetch_file

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
    return fetch_file("moses", "opustools", corpus, "v1", "de-en", out, downloads=downloads)


def files(out):
    return sorted(path.name for path in out.parent.iterdir())


def fails(out, expected, corpus="C"):
    """It must fail with one line, and leave nothing."""
    line = one_line(get, out, corpus)
    assert re.search(expected, line)
    assert files(out) == []
    return line


# --- a stand-in


@pytest.fixture
def stand_in(monkeypatch):
    """Put an OpusGet in the package's place whose `get_files` does this with its folder."""

    def put(get_files):
        class OpusGet:
            def __init__(self, **given):
                self.given = given

            def get_files(self):
                get_files(self.given)

        monkeypatch.setitem(sys.modules, "opustools", SimpleNamespace(OpusGet=OpusGet))

    return put


def brings(content, name="C_v1_moses_de-en.txt.zip"):
    def get_files(given):
        with open(f"{given['download_dir']}/{name}", "wb") as writer:
            writer.write(content)
        print("\rC.zip ... 100% of 1 KB", end="")

    return get_files


def test_what_it_brings_is_checked_named_and_locked_as_any_other_file(stand_in, out):
    given = []
    stand_in(lambda options: (given.append(options), brings(moses())(options)))
    entry = get(out)
    assert out.read_bytes() == moses()
    assert entry["pairs"] == 3
    assert files(out) == ["x.zip", "x.zip.lock.json"]
    assert json.loads(out.with_name("x.zip.lock.json").read_text())["url"] == f"opustools:{NAME}"
    named = {key: given[0][key] for key in ("source", "target", "directory", "release")}
    assert named == {"source": "de", "target": "en", "directory": "C", "release": "v1"}
    assert (given[0]["preprocess"], given[0]["suppress_prompts"]) == ("moses", True)


def test_a_file_that_changed_under_the_lock_is_an_error_and_the_old_one_stays(stand_in, out):
    stand_in(brings(moses()))
    get(out)
    stand_in(brings(moses(4)))
    with pytest.raises(EmsError, match=rf"opustools:{NAME}: .*the source changed"):
        get(out)
    assert out.read_bytes() == moses()
    assert files(out) == ["x.zip", "x.zip.lock.json"]


def raises(error):
    def get_files(options):
        raise error

    return get_files


FAILURES = {
    "printed": (
        lambda options: print("Unable to retrieve the data."),
        r"downloaded 0 files instead of one \(Unable to retrieve the data\.\)",
    ),
    **{
        type(error).__name__: (raises(error), "OpusTools failed")
        for error in (
            urllib.error.URLError("a"),
            FileNotFoundError("x"),
            KeyError("url"),
            SystemExit(),
        )
    },
    **{
        f"content {at}": (brings(content), "not a zip archive")
        for at, content in enumerate((b"", b"<html>Sorry</html>", moses()[:-20]))
    },
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_one_line_and_never_becomes_data(stand_in, out, failure, capsys):
    get_files, expected = FAILURES[failure]
    stand_in(get_files)
    assert f"opustools:{NAME}: " in fails(out, expected)
    assert capsys.readouterr().out == ""


def test_an_absent_package_is_named_also_before_any_job_starts(monkeypatch, tmp_path, out):
    settings = Settings(tmp_path, edited(REAL, "sources", {"opus": "elsewhere"}))
    monkeypatch.setitem(sys.modules, "opustools", None)
    fails(out, "needs the package opustools, which is not installed .*pip install opustools")
    settings.load()
    message = settings.error(edited(REAL, "sources", {"opus": "opustools"}))
    assert "needs the package opustools" in message


def test_what_a_killed_run_left_does_not_count(stand_in, out):
    folder = out.with_name(".x.zip.opustools")
    folder.mkdir(parents=True)
    (folder / "C_v0_moses_de-en.txt.zip").write_bytes(moses(9))
    stand_in(brings(moses()))
    assert get(out)["pairs"] == 3
    assert files(out) == ["x.zip", "x.zip.lock.json"]


# --- the package itself


class Hosts(urllib.request.HTTPSHandler):
    """Answers the two hosts of OPUS: the API, and the files by name."""

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


def test_real_the_file_comes_through_the_package(hosts, out):
    entry = get(out)
    assert out.read_bytes() == moses()
    assert entry["pairs"] == 3
    assert hosts.asked[0].startswith(API)
    assert hosts.asked[-1] == STORE + NAME
    assert files(out) == ["x.zip", "x.zip.lock.json"]


@pytest.mark.parametrize(
    ("corpus", "content", "expected"),
    [
        ("D", moses(), "downloaded 0 files instead of one"),  # OPUS does not have it
        ("C", None, "downloaded 0 files instead of one|OpusTools failed"),  # it is gone
        ("C", b"<!DOCTYPE html><html></html>", "not a zip archive, found a web page"),
    ],
)
def test_real_a_failure_is_one_line_and_never_becomes_data(hosts, out, corpus, content, expected):
    hosts.files = {} if content is None else {NAME: content}
    fails(out, expected, corpus)
