"""Documents of one language, raw and segmented: Wikipedia dumps, shards, pairs mined from them."""

import bz2
import json
import random
from dataclasses import replace
from xml.sax.saxutils import escape

import numpy as np
from made.corpora import lexicon
from made.experiments import changed
from made.shards import sentence, write_numbers
from made.text import tiny
from made.train import LANGUAGES, Toy

from ems.config.corpus_entries import Split
from ems.config.experiment import Corpus
from ems.shards.index import read_index
from ems.shards.writer import write_shards
from ems.text.clean import CleanSource, clean_corpus
from ems.text.evalkeys import write_keys
from ems.train.data import training_data
from ems.train.job import train
from ems.train.mine_documents import mine

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
XTR_OFF = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}}
CORPUS_MINING = {"sample": 80, "keep": 20, "pairs": 40_000}  # four blocks of rounds


def of_documents(tiny, sources):
    """Return the settings of an experiment that learns from documents and then from mined pairs.

    `tiny` are those of configs/tiny.yaml, `sources` the folders of documents and of dumps.
    """
    tiny = {key: value for key, value in tiny.items() if key != "sweep"}
    coherent = {"context": {"weight": 0}, "coherence": {"weight": 1, "mining": CORPUS_MINING}}
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
        "objectives": XTR_OFF | {"context": {"weight": 1}},
        "systems": {
            "context": {},
            "coherent": {"objectives": coherent, "train": start, "iterations": 1},
        },
    }


def write_articles(dumps, count=120):
    """Write a German dump of articles of three sentences into the layout of the publisher."""
    text = "Das Haus {0} ist alt. Der Hund {0} sieht das Haus. Ein Kind kommt am Abend {0}."
    write_dump(dumps / DUMP, [page(at, text.format(at)) for at in range(count)], per_stream=5)


CODES = ("en", "de")  # languages that have documents
OFF = {"xtr": {"weight": 0}, "contrastive": {"weight": 0, "width": 8}}
OWN = {"name": "Own", "version": "v1", "kind": "documents", "source": "nowhere"}
CONTEXT = {  # settings of a system that learns from documents
    "model": {"pooling": "mean-max", "max_tokens": 30, "dropout": 0.1, "attention_dropout": 0.1},
    "objectives": {**OFF, "context": {"weight": 1, "k": 2}},
    "corpora": [{**OWN, "languages": [*CODES]}],
}


def write_document_shard(folder, code, documents):
    """A shard in the format on disk; documents are lists of sentences, lists of ids."""
    folder.mkdir(parents=True)
    sentences = [sentence for document in documents for sentence in document]
    write_numbers(folder / f"{code}.ids", np.concatenate(sentences))
    write_numbers(folder / f"{code}.offsets", np.cumsum([0, *map(len, sentences)]))
    write_numbers(folder / "lines", np.arange(1, len(sentences) + 1))
    write_numbers(folder / "documents", np.cumsum([0, *map(len, documents)]))
    manifest = {"languages": [code], "pairs": len(sentences), "documents": len(documents)}
    manifest |= {"tokens": {code: sum(map(len, sentences))}}
    manifest |= {"vocabulary_sha256": "same", "sha256": {}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def write_documents(path, documents):
    """A segmented file of documents, `<a>.tsv`, lists of texts; its lines count the blank ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for document in documents:
        lines += [f"{text}\t{at}\n" for at, text in enumerate(document, len(lines) + 1)]
        lines.append("\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def topical(count, code, seed):
    """`count` documents of 2 to 6 sentences, each with the words of one of four topics."""
    draw, words = random.Random(f"{seed} {code}"), lexicon(code)
    for _ in range(count):
        own = words[draw.randrange(4) :: 4]
        length = draw.randint(2, 6)
        yield [" ".join(draw.choices(own, k=draw.randint(1, 5))) for _ in range(length)]


def add_documents(toy):
    """Add documents of two languages to a `Toy`, to train (CONTEXT) and to validate on."""
    for part, count in (("training", 80), ("validation", 12)):
        for code in CODES:
            source = toy.folder / part / f"{code}.tsv"
            write_documents(source, topical(count, code, part))
            write_shards(source, toy.vocabulary, source.with_suffix(""), pairs=100)
            toy.documents[part].append(source.with_suffix(""))
    return toy


STEPS = {"steps": 6, "validate_every": 3, "checkpoint_every": 2}
MINING = {"sample": 40, "keep": 30, "pairs": 100}
COHERENCE = {
    **CONTEXT,
    "systems": {
        "ems": {},
        "coherent": {
            "objectives": {
                "context": {"weight": 0},
                "coherence": {"weight": 1, "k": 2, "mining": MINING},
            },
            "train": {"start_from": "ems", **STEPS},
            "iterations": 2,
        },
    },
    "train": STEPS,
}
PAIRS_ALONE = {"objectives": {**OFF, "xtr": {"weight": 1}}}


def made_toy(folder):
    """Shards and documents, and the stage 1 system trained on them into `folder`/start."""
    toy = add_documents(Toy(folder))
    toy.train(folder / "start", **COHERENCE)
    return toy


def mined(toy, folder, name="coherent-1", model=None, state=None, **more):
    """Mine for a system into `folder`/mined; the folder and its manifest."""
    experiment = toy.experiment(**changed(COHERENCE, more)).of_system(name)
    model = model or toy.folder / "start" / "model"
    out, state = folder / "mined", state or folder / "mining"
    return out, mine(experiment, name, read_index(toy.index()), model, out, state)


def trained(toy, folder, pairs, name="coherent-1", start=None, **more):
    """Train a system on mined pairs into `folder`/model; the model folder."""
    experiment = toy.experiment(**changed(COHERENCE, more))
    settings = experiment.systems[name]
    data = training_data(settings, LANGUAGES, read_index(toy.index()), toy.vocabulary, pairs)
    start = start or toy.folder / "start" / "model"
    places = folder / "model", folder / "state", folder / "times.jsonl"
    train(experiment, name, data, *places, start=start)
    return folder / "model"
