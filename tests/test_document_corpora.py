"""Documents: corpora of `kind: documents`, in an experiment and the workflow, and Wikipedia."""

import bz2
import gzip
import json
import shutil
from itertools import pairwise

import pytest
import yaml
from conftest import ROOT, needs
from made import golden
from made.corpora import write_lines
from made.experiments import DOCUMENTED, GONE, Settings, edited
from made.train import END, HEAD, page, write_dump

from ems.base.errors import EmsError
from ems.base.files import state_of
from ems.corpora.demo.mirror import DOCUMENTS
from ems.corpora.demo.texts import STORIES
from ems.corpora.fetch import Release
from ems.corpora.monolingual import check_dump, open_pages, streams
from ems.text import wikipedia
from ems.text.segmenters.base import package
from ems.text.wikipedia import paragraphs, splitter, write_wikipedia
from ems.workflow.plan import plan

OWN = DOCUMENTED["corpora"][0]


def test_files_of_documents_that_a_directory_lacks_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = [OWN | {"name": "Mine", "path": "mine", "languages": ["de"]}]
    mine.append(DOCUMENTED["corpora"][1] | {"version": "v2", "source": "own"})
    project = Settings(tmp_path, DOCUMENTED | {"corpora": [*DOCUMENTED["corpora"], *mine]})
    project.site(yaml.safe_load((ROOT / "config.yaml").read_text()) | {"experiment": "mine"})
    (tmp_path / "texts/Own/v1").mkdir(parents=True)
    (tmp_path / "texts/Own/v1/de.txt.gz").touch()
    lines = "\n".join(plan(root=tmp_path, elsewhere=True).sources.lines)
    assert "sources.documents: 2 of 3 files" in lines
    assert "texts/Own/v1/en.txt" in lines
    assert "de.txt.gz" not in lines
    assert "sources.wikipedia: dumps is not a directory" in lines
    assert "dumps/dewiki/20260101/dewiki-20260101-pages-articles-multistream.xml.bz2" in lines
    assert "corpora.3.path: mine is not a directory; expected mine/de.txt" in lines
    assert "corpora.4.source: own is not a directory; expected own/Wikipedia/v2/en.txt" in lines


# --- in the workflow
DEMO = {"name": DOCUMENTS, "version": "v1", "kind": "documents"}


@pytest.mark.slow
def test_documents_go_from_their_source_to_shards_once(finished):
    tiny = yaml.safe_load((finished.folder / "configs/tiny.yaml").read_text())
    tiny["sources"]["documents"] = "embedded"
    tiny["splits"] = {DOCUMENTS: {"parts": {"train": 0.8, "validation": 0.2}}}
    tiny["corpora"].append(DEMO | {"part": "train", "max_documents": {"default": 100, "zh": 30}})
    tiny["validation"] = DEMO | {"part": "validation"}
    finished.select("documents", tiny)
    finished.snakemake("--", "text")
    results = finished.folder / "results/documents"
    report = json.loads((results / "reports/decontamination.json").read_text())
    entries = {(e["corpus"], e["pair"]): e for e in report["corpora"] if "documents" in e}
    assert len(entries) == 8
    for (corpus, language), entry in entries.items():
        for counts in (entry, entry["documents"]):
            assert counts["read"] == counts["kept"] + sum(counts["removed"].values())
        folder = results / f"shards/shared/{corpus}/v1/{language}"
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["documents"] == entry["documents"]["kept"]
        assert manifest["pairs"] == entry["kept"]
    assert entries[f"{DOCUMENTS}+train", "zh"]["documents"]["kept"] == 30
    for language in ("en", "de", "zh", "ja"):
        parts = [entries[f"{DOCUMENTS}+{part}", language] for part in ("train", "validation")]
        assert sum(part["documents"]["read"] for part in parts) == STORIES
    index = str(results / "shards/shared/index.json")
    shown = finished.run("ems", "inspect", "--index", index, "--pair", "zh", "--row", "2").stdout
    assert f"corpus {DOCUMENTS}+train v1, language zh" in shown
    assert "document 0 of 30, its sentence 2 of" in shown
    assert f" of {DOCUMENTS}/v1/zh.txt" in shown
    assert "Nothing to be done" in finished.snakemake("--", "text")
    finished.snakemake("--", "results/tables/corpora.tex")
    assert "zh (documents)" in (finished.folder / "results/tables/corpora.csv").read_text()
    locked = finished.folder / f"data/documents/{DOCUMENTS}/v1/en.txt.lock.json"
    assert json.loads(locked.read_text())["documents"] == STORIES


@pytest.mark.slow
def test_a_folder_of_documents_is_used_in_place(finished):
    tiny = yaml.safe_load((finished.folder / "configs/tiny.yaml").read_text())
    tiny["corpora"].append(OWN | {"path": "texts", "languages": ["en"]})
    finished.select("documents", tiny)
    out = "results/documents/text/segmented/Own/v1/en.tsv"
    with pytest.raises(pytest.fail.Exception, match=r"corpora\.1\.path: texts is not a directory"):
        finished.snakemake("-n", "--", out)
    write_lines(finished.folder / "texts/en.txt", ["Hello there.", "How are you?"])
    finished.snakemake("--", out)
    text = (finished.folder / out).read_text()
    assert text == "hello there .\t1\nhow are you ?\t2\n\n"


# --- Wikipedia: prose only, every page counted, the same bytes always
def test_a_missing_package_for_wikipedia_is_named_before_any_job(tmp_path, monkeypatch):
    project = Settings(tmp_path, DOCUMENTED)
    monkeypatch.setattr(wikipedia, "NEEDS", (package("no_such_module"),))
    assert "Wikipedia needs the Python package `no_such_module`" in project.error()
    assert project.load(edited(DOCUMENTED, "corpora.1", GONE)).corpora[0].documents


PAGE = """{{Infobox|name=Fluss|bild=x.jpg}}
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


def dump_pages(count):
    """Of every five pages two are articles, one a redirect, one no article, one without text."""
    kinds = {1: {"text": "#REDIRECT [[X]]", "redirect": True}, 2: {"namespace": 1}}
    kinds[3] = {"text": "{{Leer}}\n* nur eine Liste"}
    return [page(at, **{"text": prose(at)} | kinds.get(at % 5, {})) for at in range(count)]


def documents(path):
    *found, rest = gzip.decompress(path.read_bytes()).decode().split("\n\n")
    assert rest == ""
    return [each.split("\n") for each in found]


def test_the_paragraphs_of_prose_of_a_page_are_kept():
    found = paragraphs(PAGE, wikipedia.NO_TEXT | {"datei", "kategorie"})
    assert splitter("de")(found) == [SENTENCES[:2], SENTENCES[2:4], SENTENCES[4:]]


@pytest.mark.parametrize(("size", "workers"), [(1, 1), (2, 2), (100, 1)])
def test_every_page_is_counted_with_the_same_bytes_in_any_pieces(tmp_path, size, workers):
    dump = write_dump(tmp_path / "de.xml.bz2", dump_pages(23), per_stream=4)
    out = tmp_path / "de.txt.gz"
    counts = write_wikipedia(dump, "de", out, None, workers, size)
    articles = [at for at in range(23) if at % 5 in (0, 4)]
    expected = [[f"Satz {at} hier.", f"Und noch einer von {at}.", "Ein Absatz."] for at in articles]
    assert documents(out) == expected
    kept = {"pages": 23, "documents": len(articles), "sentences": 3 * len(articles)}
    assert counts == {**kept, "redirect": 5, "no_article": 5, "no_text": 4, "unreadable": 0}
    assert json.loads((tmp_path / "de.txt.json").read_text()) == counts
    assert not list(tmp_path.glob(".*"))


def test_streams_are_found_across_blocks(tmp_path, monkeypatch):
    dump = write_dump(tmp_path / "de.xml.bz2", dump_pages(40), per_stream=1)
    places, sha256 = streams(dump)
    assert len(places) == 43
    assert places[-1] == dump.stat().st_size
    for block in (1, 7, 10, 64):
        monkeypatch.setattr("ems.corpora.archive.BLOCK", block)
        assert streams(dump) == (places, sha256)
    spans = pairwise(places[1:])
    texts = [open_pages(dump, places[1], start, end).read() for start, end in spans]
    assert all(text.startswith(HEAD.encode()) and text.endswith(END.encode()) for text in texts)


def test_a_bad_dump_is_one_error(tmp_path):
    path, out = tmp_path / "de.xml.bz2", tmp_path / "de.txt.gz"
    whole = HEAD + "".join(dump_pages(20)) + END
    at = len(whole) // 2
    for content, message in {
        b"no bzip2": "not a bzip2 file",
        bz2.compress(b"<html>sorry</html>"): "not the XML of a dump",
        b"".join(bz2.compress(text.encode()) for text in (HEAD, whole[at:])): "expected a page at",
        bz2.compress(whole.encode())[:-40]: "damaged or cut short",
        bz2.compress(whole[:at].encode()): "not the XML of a dump",
        bz2.compress((HEAD + page(1, "{{Leer}}") + END).encode()): "no article with text in its 1",
    }.items():
        path.write_bytes(content)
        with pytest.raises(EmsError, match=message) as caught:
            write_wikipedia(path, "de", out, None, 1)
        assert str(path) in str(caught.value)
        assert not out.exists()
        shutil.rmtree(state_of(out), ignore_errors=True)
    path.write_bytes(bz2.compress((HEAD + "".join(dump_pages(5)) + END).encode()))
    write_wikipedia(path, "de", out, None, 1)  # a dump in one stream
    assert len(documents(out)) == 2


def test_a_dump_is_fetched_from_the_published_layout(tmp_path):
    name = "dewiki/20260101/dewiki-20260101-pages-articles-multistream.xml.bz2"
    dump = write_dump(tmp_path / "dumps" / name, dump_pages(5), 2)
    out = tmp_path / "de.xml.bz2"
    lock = Release("dump", str(tmp_path / "dumps"), "", "20260101").fetch("de", out)
    assert out.read_bytes() == dump.read_bytes()
    assert lock["bytes"] == len(dump.read_bytes())
    dump.write_bytes(bz2.compress(b"<html>sorry</html>"))
    with pytest.raises(EmsError, match="expected a dump of MediaWiki, found b'<html>"):
        check_dump(dump)


def test_each_paragraph_is_split_into_its_own_sentences():
    def split(line):
        language, paragraph = line.split(" ", 1)
        found, *others = splitter(language)([paragraph, "<P>", "", " \u2028 \x00 ", "Five."])
        assert others == [["<P>"], [], [], ["Five."]]
        return "\n".join(found)

    golden.replay("paragraphs.txt", split)
