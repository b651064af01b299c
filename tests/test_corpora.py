"""Published corpora: a corrupted download never becomes data, and no line ever shifts."""

import ast
import gzip
import json
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from made import golden
from made.corpora import DOCUMENTS, moses, moses_of, write_lines, zipped
from made.experiments import one_line, shipped
from made.places import flip
from made.web import source_of

from ems.base.errors import EmsError
from ems.base.files import sha256_file
from ems.config.corpora import host_of
from ems.corpora import moses as moses_module
from ems.corpora.archive import Budget, Limits
from ems.corpora.download import Downloads
from ems.corpora.fetch import Release
from ems.corpora.moses import count_mined, count_pairs, members, read_mined, read_pairs


def pairs_of(path):
    return list(read_pairs(path, "C", "de-en"))


# --- Moses zips
def test_a_moses_zip_may_hold_more_text_than_may_be_unpacked_to_disk(tmp_path, monkeypatch):
    with open(tmp_path / "large.zip", "wb") as file:
        file.truncate(40 << 30)  # as large as CCMatrix en-es, and no byte on disk
    Budget(tmp_path / "large.zip", moses_module.MOSES_LIMITS).spend(120 << 30)
    with pytest.raises(EmsError, match="unpacks to more than the limit of 68,719,476,736 bytes"):
        Budget(tmp_path / "large.zip").spend(120 << 30)
    path = moses(tmp_path / "x.zip", b"a\nb\n", b"c\nd\n")
    monkeypatch.setattr(moses_module, "MOSES_LIMITS", Limits(5))
    with pytest.raises(EmsError, match="unpacks to more than the limit of 5 bytes"):
        count_pairs(path, "C", "de-en")


TWO = [("a", "c"), ("b", "d")]
SIDES = [  # two sides, their pairs; a last line needs no line feed
    *((b"a\nb" + one, b"c\nd" + other, TWO) for one in (b"", b"\n") for other in (b"", b"\n")),
    (b"\r\na\r\n\r\n", b"b\n\nc\n", [("", "b"), ("a", ""), ("", "c")]),
]


@pytest.mark.parametrize(("first", "second", "expected"), SIDES)
def test_the_pairs_of_a_zip_come_in_order_including_empty_lines(tmp_path, first, second, expected):
    path = moses(tmp_path / "x.zip", first, second)
    assert count_pairs(path, "C", "de-en") == len(expected)
    assert pairs_of(path) == expected


@pytest.mark.parametrize("breaker", ["\u2028", "\u2029", "\r", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line_and_other_members_are_ignored(tmp_path, breaker):
    pairs = [(f"a{breaker}b", "c"), ("d", f"e{breaker}{breaker}f"), (f"{breaker}g", "h")]
    pairs += [("x" * 3_000_000, "long"), ("short", "y" * 2_500_000)]  # longer than a block
    path = moses_of(tmp_path / "x.zip", pairs, extra=[("../evil", "x"), ("/tmp/ems-evil", "x")])
    assert count_pairs(path, "C", "de-en") == 5
    assert pairs_of(path) == pairs
    assert list(tmp_path.iterdir()) == [path]


# --- mined files
LINES = ["1.25\tHallo\tHello", "1.0750\tZwei\tTwo", "1.0749\tDrei\tThree", "1.04\tVier\tFour"]


def mined(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content))
    return path


def test_mined_pairs_above_the_threshold_come_in_the_order_of_the_file(tmp_path):
    path = mined(tmp_path / "x.tsv.gz", LINES)
    assert list(read_mined(path)) == [("Hallo", "Hello"), ("Zwei", "Two")]
    assert count_mined(path) == 2
    assert list(read_mined(path, 1.04))[2:] == [("Drei", "Three"), ("Vier", "Four")]
    assert [count_mined(path, threshold) for threshold in (1.2, 1.0749, 0)] == [1, 3, 4]
    with pytest.raises(EmsError, match=r"x\.tsv\.gz: contains no pair with a score of 2 or more"):
        count_mined(path, 2.0)
    path = mined(tmp_path / "x.tsv.gz", LINES[::-1])  # nothing relies on the best standing first
    assert list(read_mined(path)) == [("Zwei", "Two"), ("Hallo", "Hello")]


@pytest.mark.parametrize("breaker", ["\u2028", "\r", "\x85", "\x0c"])
def test_in_mined_files_only_lf_ends_a_line_and_only_a_tab_a_column(tmp_path, breaker):
    path = mined(tmp_path / "x.tsv.gz", [f"1.2\ta{breaker}b c\td{breaker}e\r", "1.1\t\tf"])
    assert list(read_mined(path)) == [(f"a{breaker}b c", f"d{breaker}e"), ("", "f")]


def test_a_malformed_file_is_one_line_that_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr("ems.corpora.archive.LONGEST_LINE", 50)

    def read(path):
        if path.name == "mined":
            return count_mined(path)
        return count_pairs(path, "C", "de-en"), pairs_of(path)

    def refused(line):
        kind, text = line.split(" ", 1)
        path, content = tmp_path / kind, ast.literal_eval(text)
        path.unlink(missing_ok=True)
        if kind == "mined":
            path.write_bytes(gzip.compress("".join(f"{row}\n" for row in LINES).encode() + content))
        elif isinstance(content, tuple):
            moses(path, *content)
        elif content is not None:
            path.write_bytes(content)
        return one_line(read, path).replace(f"{tmp_path}/", "")

    golden.replay("corpora_malformed.txt", refused)
    other = moses_of(tmp_path / "other.zip", [("a", "b")], corpus="Other")
    assert "expected the member C.de-en.de, found" in one_line(count_pairs, other, "C", "de-en")


def test_a_mined_file_that_is_a_bomb_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("ems.corpora.archive.SMALL", 1 << 20)
    path = mined(tmp_path / "x.tsv.gz", ["1.2\ta\tb"] * (1 << 18))
    with pytest.raises(EmsError, match="unpacks to more than"):
        count_mined(path)


# --- fetching, of Moses zips and of mined files alike
def sides(*texts):
    """The bytes of a Moses zip."""
    return zipped(zip(members("C", "de-en"), texts, strict=True))


MINED = b"1.25\tHallo\tHello\n1.04\tZwei\tTwo\n"
LASERS = "/WikiMatrix/v1/WikiMatrix.de-en.tsv.gz"
FORMATS = {  # how a pair is fetched, where it lies, good, other and bad content
    "moses": SimpleNamespace(
        fetch=lambda source, out: Release("moses", source, "C", "v1").fetch("de-en", out),
        on_host="/OPUS-C/v1/moses/de-en.txt.zip",
        on_disk="/C/v1/moses/de-en.txt.zip",
        good=sides(b"a\nb\n", b"c\nd\n"),
        other=sides(b"a\n", b"c\n"),
        bad=sides(b"a\nb\n", b"c\n"),
        message="equally many lines",
    ),
    "mined": SimpleNamespace(
        fetch=lambda source, out: Release("mined", source, "", "").fetch("de-en", out),
        on_host=LASERS,
        on_disk=LASERS,
        good=gzip.compress(MINED),
        other=gzip.compress(MINED[:17]),
        bad=gzip.compress(MINED + b"x\n"),
        message="line 3 has 1 columns",
    ),
}
every_format = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
every_kind = pytest.mark.parametrize("kind", ["directory", "file", "host"])


@contextmanager
def mirror(kind, tmp_path, form, content):
    """Yields a source with one file, and the path of that file."""
    folder = tmp_path / "mirror"
    path = folder / (form.on_host if kind == "host" else form.on_disk)[1:]
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with source_of(kind, folder) as source:
        yield source, path


@every_kind
@every_format
def test_a_fetched_file_is_the_source_byte_for_byte_and_locked(tmp_path, kind, form):
    out = tmp_path / "data" / Path(form.on_disk).name
    with mirror(kind, tmp_path, form, form.good) as (source, _):
        entry = form.fetch(source, out)
        assert form.fetch(source, out) == entry  # a second time is no change
    assert out.read_bytes() == form.good
    assert entry == json.loads(out.with_name(f"{out.name}.lock.json").read_text())
    assert (entry["bytes"], entry["pairs"]) == (len(form.good), 2)
    assert entry["url"].startswith(source)
    assert sorted(p.name for p in out.parent.iterdir()) == [out.name, f"{out.name}.lock.json"]


@every_kind
def test_files_are_fetched_together_and_again_only_if_they_or_their_place_changed(tmp_path, kind):
    first, other = tmp_path / "a", tmp_path / "b"
    for folder in (first, other):
        for name in ("de", "en", "fr"):
            write_lines(folder / "C/v1" / f"{name}.txt", [f"{name} {at}." for at in range(3)])
    paths = {name: tmp_path / f"{name}.txt" for name in ("de", "en", "fr")}

    def fetch(source):
        before = {path: _times(path) for path in paths.values()}
        release = Release("text", source, "C", "v1", downloads=Downloads(per_host=1))
        made = release.fetch_all(paths)
        assert made == {str(path): sha256_file(path) for path in paths.values()}
        return [name for name, path in paths.items() if before[path] != _times(path)]

    good = (first / "C/v1/en.txt").read_bytes()
    with source_of(kind, first) as source, source_of(kind, other) as place:
        (first / "C/v1/en.txt").write_bytes(b"<html>")
        message = one_line(fetch, source)
        assert "/C/v1/en.txt: expected a file, found a web page" in message
        (first / "C/v1/en.txt").write_bytes(good)
        assert fetch(source) == ["en"]
        assert fetch(source) == []
        flip(paths["de"])
        paths["fr"].unlink()
        assert fetch(source) == ["de", "fr"]
        assert fetch(place) == ["de", "en", "fr"]
        write_lines(other / "C/v1/de.txt", ["Other."])
        if kind == "host":  # asked only if something is fetched
            assert fetch(place) == []
        else:
            assert "the source changed" in one_line(fetch, place)


def test_ntrex_comes_from_its_repository_as_zips_of_its_lines(tmp_path):
    """A host has the repository, whose names are ISO 639-3 with exceptions; no line is left out."""
    texts = {"src.eng": ["A.", "A.", "B."], "ref.zho-CN": ["甲。", "甲。", "乙。"]}
    texts["ref.deu"] = ["Eins.", "Eins.", "Zwei."]
    for name, lines in texts.items():
        write_lines(tmp_path / f"repository/NTREX-128/newstest2019-{name}.txt", lines)
    write_lines(tmp_path / f"repository/{DOCUMENTS}", ["x", "x", "y"])
    paths = {name: tmp_path / f"data/{name}.txt.zip" for name in ("en-zh", "de-en", "de-zh")}
    with source_of("host", tmp_path / "repository") as source:
        release = Release("moses", source, "NTREX", "v1")
        sums = release.fetch_all(paths)
        assert sums == release.fetch_all(paths, again=True)  # the same bytes
        form = Release("documents", source, "NTREX", "v1")
        form.fetch_all({DOCUMENTS: tmp_path / "data" / DOCUMENTS})
        missing = {"en-fr": tmp_path / "data/en-fr.txt.zip"}
        assert "newstest2019-ref.fra.txt" in one_line(release.fetch_all, missing)
    english, chinese, german = texts.values()
    pairs = list(zip(english, chinese, strict=True))
    assert list(read_pairs(paths["en-zh"], "NTREX", "en-zh")) == pairs
    pairs = list(zip(german, chinese, strict=True))
    assert list(read_pairs(paths["de-zh"], "NTREX", "de-zh")) == pairs
    names = {*(path.name for path in paths.values()), DOCUMENTS}
    made = {path.name.removesuffix(".lock.json") for path in (tmp_path / "data").iterdir()}
    assert made == names
    lock = json.loads((tmp_path / "data/de-en.txt.zip.lock.json").read_text())
    assert lock["url"] == f"{source}/NTREX-128/newstest2019-ref.deu.txt"


def test_a_host_gives_ntrex_its_own_source_and_a_directory_of_opus_has_it():
    sources = {"opus": "https://opus", "ntrex": "https://raw/NTREX"}
    assert host_of("NTREX", sources) == "ntrex"
    assert host_of("TED2020", sources) == host_of("NTREX", sources | {"opus": "folder"}) == "opus"
    assert shipped("ems62").sources["ntrex"].endswith("/8561f6a622db9edad1217683e5c83daefd8bb2bf")


def _times(path):
    return path.exists() and (path.stat().st_mtime_ns, path.stat().st_ino)


@every_kind
@every_format
def test_a_source_that_changed_is_an_error_even_if_the_file_is_gone(tmp_path, kind, form):
    out = tmp_path / "data" / Path(form.on_disk).name
    lock = out.with_name(f"{out.name}.lock.json")
    with mirror(kind, tmp_path, form, form.good) as (source, path):
        form.fetch(source, out)
        locked = lock.read_bytes()
        path.write_bytes(form.other)
        with pytest.raises(EmsError, match=rf"the source changed.*delete .*{lock.name}"):
            form.fetch(source, out)
        assert out.read_bytes() == form.good
        out.unlink()
        with pytest.raises(EmsError, match="the source changed"):
            form.fetch(source, out)
        assert not out.exists()
        assert lock.read_bytes() == locked
        lock.unlink()
        form.fetch(source, out)
    assert out.read_bytes() == form.other


@every_kind
@every_format
def test_a_web_page_or_a_malformed_file_leaves_no_file_and_no_lock(tmp_path, kind, form):
    out = tmp_path / "data" / Path(form.on_disk).name
    page = b"<html><body>Service unavailable</body></html>\n"
    with mirror(kind, tmp_path, form, b"") as (source, path):
        for content, message in ((form.bad, form.message), (page, "not a "), (b"", "not a ")):
            path.write_bytes(content)
            line = one_line(form.fetch, source, out)
            assert message in line
            assert (form.on_host if kind == "host" else str(path)) in line
            assert list(out.parent.iterdir()) == []


@every_format
def test_a_missing_or_unreadable_source_is_an_error_that_names_it(tmp_path, form):
    out = tmp_path / "data" / "x"
    with pytest.raises(EmsError, match=rf"{form.on_disk}: no such file; check `sources`"):
        form.fetch(str(tmp_path), out)
    (tmp_path / form.on_disk[1:]).mkdir(parents=True)
    with pytest.raises(EmsError, match=rf"{form.on_disk}: cannot be read"):
        form.fetch(str(tmp_path), out)
    assert not list(out.parent.glob("*"))
