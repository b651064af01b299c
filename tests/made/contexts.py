"""Documents of single languages: shards by hand, and an experiment that learns from documents."""

import json
import random

import numpy as np
from made.mirror import lexicon
from made.shards import write_numbers

from ems.shards.writer import write_shards

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
