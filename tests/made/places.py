"""What cases of tests/refused/ name: folders made once (PLACES), and kinds of file content."""

import base64
import gzip
import io
import json
import random
import zipfile

from made.models import write_model
from made.scores import write_flores, write_scores
from made.shards import vocabulary, write_pairs

from ems.shards.index import shards_in, write_index
from ems.shards.writer import write_shards

SYLLABLES = ("ka", "ti", "va", "sol", "nel", "mar", "tar", "kir")


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


KINDS = {  # kind of file content: its bytes
    "base64": base64.b64decode,
    "gzip": lambda text: gzip.compress(text.encode(), mtime=0),
    "json": lambda value: json.dumps(value).encode(),
    "repeat": lambda of: of[0].encode() * of[1],
    "zip": zipped,
}


def model(folder):
    text = [f"{syllable} lo mi ne ru so" for syllable in SYLLABLES] * 4
    return write_model(folder, ["de", "en"], text, pieces=40)


def shards(folder):
    """The folder de-en of 30 pairs, its vocabulary.model and the index.json that lists it."""
    source = write_pairs(folder / "de-en.tsv", 30, random.Random(1))
    write_shards(source, vocabulary(folder / "vocabulary.model", 200), folder / "de-en")
    write_index({"train": shards_in(folder / "de-en"), "validation": []}, folder / "index.json")
    return folder


def scores(folder):
    """The folders a and b of two systems, each with tatoeba.json and flores200.json."""
    for at, system in enumerate("ab"):
        write_scores(folder, system, {"de": 70.0 + at, "fr": 80.0 + at})
        write_flores(folder, system, ["de", "en", "fr"])
    return folder


MAKERS = {"model": model, "shards": shards, "scores": scores}


class Places(dict):
    """Name -> its folder, made when it is first asked for."""

    def __init__(self, root):
        self.root = root

    def __missing__(self, name):
        self[name] = MAKERS[name](self.root / name)
        return self[name]
