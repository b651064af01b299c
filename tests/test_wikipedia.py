"""Laws of Wikipedia's dumps: prose and nothing else, every page counted, the same bytes always."""

import bz2
import gzip
import json
import shutil
from itertools import pairwise

import pytest
from conftest import needs
from made.cli import Cli, records
from made.train import END, HEAD, page, write_dump

from ems.base.errors import EmsError
from ems.base.files import state_of
from ems.corpora.fetch import fetch_file
from ems.corpora.monolingual import check_dump, open_pages, streams
from ems.text import wikipedia
from ems.text.wikipedia import paragraphs, splitter, write_wikipedia

PROSE = """{{Infobox|name=Fluss|bild=x.jpg}}
Die '''Elbe''' ist ein [[Fluss|Strom]].<ref>Buch. Seite 3.</ref> Sie fließt nach [[Hamburg]].
[[Datei:Elbe.jpg|mini|Die [[Elbe]] bei Nacht. Ein Bild.]]
== Lauf ==
Ein Absatz &amp; mehr.<!-- Notiz --> Siehe [https://example.org dort]. __TOC__
* ein Punkt
# noch einer
: eingerückt
{| class="wikitable"
| Zelle || Zelle
|}
<gallery>
Datei:x.jpg|Text
</gallery>
Er sagte „Nein.“ Und <math>x^2</math> ''ging''.
[[Kategorie:Fluss in Europa]]"""
SENTENCES = [
    "Die Elbe ist ein Strom.",
    "Sie fließt nach Hamburg.",
    "Ein Absatz & mehr.",
    "Siehe dort.",
    "Er sagte „Nein.“ Und ging.",
]


@pytest.fixture(autouse=True)
def _installed():
    for need in wikipedia.NEEDS:
        needs(need.present(), need.install)


def prose(number):
    return f"Satz {number} hier. Und noch einer von {number}.\n\nEin Absatz."


def pages(count):
    """Articles, a redirect, a page that is no article, and one without text among every five."""
    made = []
    for at in range(count):
        kinds = {
            1: page(at, "#REDIRECT [[X]]", redirect=True),
            2: page(at, prose(at), namespace=1),
            3: page(at, "{{Leer}}\n* nur eine Liste"),
        }
        made.append(kinds.get(at % 5, page(at, prose(at))))
    return made


def documents(path):
    *found, rest = gzip.decompress(path.read_bytes()).decode().split("\n\n")
    assert rest == ""
    return [each.split("\n") for each in found]


def test_of_a_page_its_paragraphs_of_prose_are_left():
    found = paragraphs(PROSE, wikipedia.NO_TEXT | {"datei", "kategorie"})
    assert splitter("de")(found) == [SENTENCES[:2], SENTENCES[2:4], SENTENCES[4:]]


@pytest.mark.parametrize(("size", "workers"), [(1, 1), (2, 1), (2, 2), (3, 1), (100, 1)])
def test_every_page_is_counted_and_the_bytes_are_the_same_in_any_pieces(tmp_path, size, workers):
    dump = write_dump(tmp_path / "de.xml.bz2", pages(23), per_stream=4)
    out = tmp_path / "de.txt.gz"
    counts = write_wikipedia(dump, "de", out, workers=workers, size=size)
    articles = [at for at in range(23) if at % 5 in (0, 4)]
    expected = [[f"Satz {at} hier.", f"Und noch einer von {at}.", "Ein Absatz."] for at in articles]
    assert documents(out) == expected
    assert counts == {
        "pages": 23,
        "documents": len(articles),
        "sentences": 3 * len(articles),
        "redirect": 5,
        "no_article": 5,
        "no_text": 4,
        "unreadable": 0,
    }
    assert json.loads((tmp_path / "de.txt.json").read_text()) == counts
    assert not list(tmp_path.glob(".*"))


def test_a_dump_of_one_stream_is_read_too(tmp_path):
    (tmp_path / "de.xml.bz2").write_bytes(bz2.compress((HEAD + "".join(pages(5)) + END).encode()))
    write_wikipedia(tmp_path / "de.xml.bz2", "de", tmp_path / "de.txt.gz")
    assert len(documents(tmp_path / "de.txt.gz")) == 2


def test_streams_are_found_across_the_blocks_that_are_read(tmp_path, monkeypatch):
    dump = write_dump(tmp_path / "de.xml.bz2", pages(40), per_stream=1)
    places, sha256 = streams(dump)
    assert len(places) == 43
    assert places[-1] == dump.stat().st_size
    for block in (1, 7, 10, 64):
        monkeypatch.setattr("ems.corpora.archive.BLOCK", block)
        assert streams(dump) == (places, sha256)
    spans = pairwise(places[1:])
    texts = [open_pages(dump, places[1], start, end).read() for start, end in spans]
    assert all(text.startswith(HEAD.encode()) and text.endswith(END.encode()) for text in texts)


def test_what_is_no_dump_is_one_clear_error(tmp_path):
    path, out = tmp_path / "de.xml.bz2", tmp_path / "de.txt.gz"
    whole = HEAD + "".join(pages(20)) + END
    at = len(whole) // 2
    cases = {
        b"no bzip2": "not a bzip2 file",
        bz2.compress(b"<html>sorry</html>"): "not the XML of a dump",
        b"".join(bz2.compress(text.encode()) for text in (HEAD, whole[at:])): "expected a page at",
        bz2.compress(whole.encode())[:-40]: "damaged or cut short",
        bz2.compress(whole[:at].encode()): "not the XML of a dump",
        bz2.compress((HEAD + page(1, "{{Leer}}") + END).encode()): "no article with text in its 1",
    }
    for content, message in cases.items():
        path.write_bytes(content)
        with pytest.raises(EmsError, match=message) as caught:
            write_wikipedia(path, "de", out)
        assert str(path) in str(caught.value)
        assert not out.exists()
        shutil.rmtree(state_of(out), ignore_errors=True)


def test_a_dump_is_fetched_from_the_published_layout_and_locked(tmp_path):
    name = "dewiki/20260101/dewiki-20260101-pages-articles-multistream.xml.bz2"
    dump = write_dump(tmp_path / "dumps" / name, pages(5), 2)
    out = tmp_path / "de.xml.bz2"
    lock = fetch_file("dump", str(tmp_path / "dumps"), "", "20260101", "de", out)
    assert out.read_bytes() == dump.read_bytes()
    assert lock["bytes"] == len(dump.read_bytes())
    dump.write_bytes(bz2.compress(b"<html>sorry</html>"))
    with pytest.raises(EmsError, match="expected a dump of MediaWiki, found b'<html>"):
        check_dump(dump)


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_it_goes_on_with_the_pieces_that_are_left(tmp_path, workers):
    ems, state = Cli(tmp_path), tmp_path / "state"
    dump = write_dump(tmp_path / "de.xml.bz2", pages(120), per_stream=2)
    job = ("wikipedia", "--dump", dump, "--language", "de", "--state", state)
    job += ("--piece-streams", 2)
    ems(*job, "--out", tmp_path / "whole.txt.gz")
    out = tmp_path / "out.txt.gz"
    ems.kill_once(lambda: records(state) >= 2, *job, "--out", out, "--workers", workers)
    assert not out.exists()
    lines = ems(*job, "--out", out)
    assert any("resumed, " in line for line in lines)
    assert out.read_bytes() == (tmp_path / "whole.txt.gz").read_bytes()
    assert not state.exists()


# --- sentences


@pytest.mark.parametrize(
    ("language", "paragraph", "sentences"),
    [
        ("en", "Mr. Smith went home. He slept! Did he? Yes.", 4),
        ("en", "It costs 3.5 dollars, e.g. in shops.", 1),
        (
            "zh",
            "你好。他說：“再見！”然後走了？是的",
            ["你好。", "他說：“再見！”", "然後走了？", "是的"],
        ),
        ("en", "He wrote 你好。Then he left.", ["He wrote 你好。", "Then he left."]),
        ("en", "<P>", ["<P>"]),
        ("en", "<b>Bold.</b>", ["<b>Bold.</b>"]),
        ("xx", "One. Two.", ["One.", "Two."]),  # no abbreviations of this language
        ("de", "", []),
        ("de", " \u2028 \x00 ", []),
    ],
)
def test_paragraphs_are_split_where_sentences_end(language, paragraph, sentences):
    (found,) = splitter(language)([paragraph])
    assert found == sentences if isinstance(sentences, list) else len(found) == sentences
    assert "".join("".join(found).split()) == "".join(
        paragraph.replace("\x00", "").replace("\u2028", "").split()
    )


def test_each_paragraph_keeps_its_own_sentences():
    texts = ["One. Two.", "<P>", "", "三。四。", "Five."]
    assert splitter("en")(texts) == [["One.", "Two."], ["<P>"], [], ["三。", "四。"], ["Five."]]
