"""Corpora of documents of one language, raw and segmented, and dumps of Wikipedia."""

import bz2
import random
from dataclasses import replace
from xml.sax.saxutils import escape

from made.contexts import write_documents
from made.shards import sentence
from made.text import tiny

from ems.config.corpus_entries import Split
from ems.config.experiment import Corpus
from ems.text.clean import CleanSource, clean_corpus
from ems.text.evalkeys import write_keys

CORPUS = Corpus("Own", "v1", "own", True, ("en",), None, kind="documents")


def raw(documents, ending=b"\n\n"):
    """The bytes of a file: documents of lines, which are bytes, each followed by a blank line."""
    return b"".join(b"\n".join(lines) + ending for lines in documents)


def cleaned(folder, content, evaluation=(), corpus=CORPUS, splits=None, name="en", **changes):
    """(the clean documents as (text, line), the report) of a file `en.txt` with this content."""
    experiment = tiny(replace(corpus), **changes)
    if splits:
        experiment = replace(experiment, splits={corpus.name: Split(parts=splits)})
    path, keys = folder / f"{name}.txt", folder / "keys.tsv"
    path.write_bytes(content)
    write_keys(dict.fromkeys(evaluation, ("tatoeba/deu",)), keys)
    source = CleanSource(corpus.label, corpus.version, "en", (path,))
    out = folder / corpus.label / "en.tsv"
    report = clean_corpus(experiment, source, keys, out)
    return read_clean(out), report


def read_clean(path):
    """The documents of a clean or segmented file: (text, line) of each sentence."""
    *documents, rest = path.read_text(encoding="utf-8").split("\n\n")
    assert rest == ""
    rows = [[line.split("\t") for line in each.split("\n")] for each in documents]
    return [[(text, int(line)) for text, line in each] for each in rows]


def write_random(path, sizes, seed):
    """Segmented documents of so many sentences each."""
    draw = random.Random(seed)
    return write_documents(path, [[sentence(draw, path.stem) for _ in range(n)] for n in sizes])


# --- Wikipedia

DUMP = "dewiki/20260101/dewiki-20260101-pages-articles-multistream.xml.bz2"
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="de">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>dewiki</dbname>
    <base>https://de.wikipedia.org/wiki/Wikipedia:Hauptseite</base>
    <generator>MediaWiki 1.45.0-wmf.28</generator>
    <case>first-letter</case>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Diskussion</namespace>
      <namespace key="6" case="first-letter">Datei</namespace>
    </namespaces>
  </siteinfo>
"""
PAGE = """  <page>
    <title>{title}</title>
    <ns>{namespace}</ns>
    <id>{number}</id>
{redirect}    <revision>
      <id>{number}</id>
      <timestamp>2026-01-01T00:00:00Z</timestamp>
      <contributor>
        <username>A</username>
        <id>1</id>
      </contributor>
      <comment>/* x */</comment>
      <origin>{number}</origin>
      <model>wikitext</model>
      <format>text/x-wiki</format>
      <text bytes="1" sha1="x" xml:space="preserve">{text}</text>
      <sha1>x</sha1>
    </revision>
  </page>
"""
END = "</mediawiki>\n"


def page(number, text, namespace=0, redirect=False):
    """The XML of a page."""
    target = '    <redirect title="Other" />\n' if redirect else ""
    return PAGE.format(
        title=f"Page {number}",
        namespace=namespace,
        number=number,
        redirect=target,
        text=escape(text),
    )


def write_dump(path, pages, per_stream):
    """A dump in the published format: the head, so many pages a stream, the end."""
    groups = [pages[at : at + per_stream] for at in range(0, len(pages), per_stream)]
    texts = [HEAD, *("".join(group) for group in groups), END]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(bz2.compress(text.encode()) for text in texts))
    return path


# --- the whole way

WIKIPEDIA = {"name": "Wikipedia", "version": "20260101", "kind": "documents"}
OFF = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}}
MINING = {"sample": 80, "keep": 20, "pairs": 40_000}  # four blocks of rounds


def of_documents(tiny, sources):
    """Return the settings of an experiment that learns from documents and then from mined pairs.

    `tiny` are those of configs/tiny.yaml, `sources` the folders of documents and of dumps.
    """
    tiny = {key: value for key, value in tiny.items() if key != "sweep"}
    coherent = {"context": {"weight": 0}, "coherence": {"weight": 1, "mining": MINING}}
    start = {"start_from": "context"}
    return tiny | {
        "languages": ["en", "de"],
        "segmenters": {"default": "sacremoses"},
        "vocabulary": tiny["vocabulary"] | {"size": 600},
        "sources": tiny["sources"] | sources,
        "corpora": [
            {"name": "DemoDocuments", "version": "v1", "kind": "documents"},
            WIKIPEDIA | {"languages": ["de"]},
        ],
        "objectives": OFF | {"context": {"weight": 1}},
        "systems": {
            "context": {},
            "coherent": {"objectives": coherent, "train": start, "iterations": 1},
        },
    }


def write_articles(dumps, count=120):
    """Write a German dump of articles of three sentences into the layout of the publisher."""
    text = "Das Haus {0} ist alt. Der Hund {0} sieht das Haus. Ein Kind kommt am Abend {0}."
    write_dump(dumps / DUMP, [page(at, text.format(at)) for at in range(count)], per_stream=5)
