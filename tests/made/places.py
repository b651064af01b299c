"""Folders that cases of tests/refused/ name, kinds of file content, and how files get damaged."""

import base64
import gzip
import io
import json
import os
import random
from functools import partial
from pathlib import Path

import numpy as np
from made.corpora import packed, zipped
from made.models import write_export, write_model, write_ngrams
from made.scores import write_flores, write_scores
from made.shards import vocabulary, write_pairs

from ems.shards.index import shards_in, write_index
from ems.shards.writer import write_shards
from ems.use.encoder import Encoder
from ems.use.search import build_index
from ems.use.stream import TextInput

KINDS = {  # kind of file content: its bytes
    "base64": base64.b64decode,
    "encoded": lambda of: of[1].encode(of[0]),
    "gzip": lambda text: gzip.compress(text.encode(), mtime=0),
    "packed": lambda of: packed(of[1].encode(), of[0]),
    "json": lambda value: json.dumps(value).encode(),
    "npy": lambda of: saved(np.full(*of)),
    "repeat": lambda of: of[0].encode() * of[1],
    "zip": lambda members: zipped(members.items()),
}


def saved(array):
    """The bytes of a .npy file."""
    np.save(writer := io.BytesIO(), array)
    return writer.getvalue()


def model(folder):
    first = ("ka", "ti", "va", "sol", "nel", "mar", "tar", "kir")
    return write_model(folder, ["de", "en"], [f"{word} lo mi ne ru so" for word in first] * 4, 40)


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


def export(folder, **sizes):
    """The export of a model, which is made next to it."""
    own, lines = folder.with_name(f"{folder.name}-model"), ["ka lo mi ne ru so ti va sol"] * 4
    return write_export(folder, write_model(own, ["de", "en"], lines, 30, sizes=sizes))


def index(folder):
    """A text of 9 lines, its index, and its model: vectors of float32[9, 16]."""
    encoder = Encoder(model(folder / "model"), "cpu")
    (folder / "text.txt").write_text("ka lo mi\n" * 9)
    build_index(encoder, TextInput(folder / "text.txt", ("de",)), folder / "text.txt.index")
    return folder


MAKERS = {"index": index, "model": model, "shards": shards, "scores": scores}
MAKERS |= {"ngrams": write_ngrams, "export": export}
MAKERS["static"] = partial(export, layers=0, positions="none")


class Places(dict):
    """Name -> its folder, made when it is first asked for."""

    def __init__(self, root):
        self.root = root

    def __missing__(self, name):
        self[name] = MAKERS[name](self.root / name)
        return self[name]


# --- files of a finished run of `tiny`, and what a disk may do to them


RUN = Path("results/tiny")
SHARD = RUN / "shards/shared/Demo/v1/de-en/00000"
INDEX = RUN / "shards/shared/index.json"
MODEL = RUN / "models/ems"
VOCABULARY = RUN / "vocab/shared/vocabulary.model"
SAMPLE = RUN / "vocab/shared/sample.txt"
REPORT = RUN / "reports/decontamination.json"
KEYS = RUN / "text/evalkeys.tsv"
CLEAN, SEGMENTED = (RUN / f"text/{kind}/Demo/v1/de-en.tsv" for kind in ("clean", "segmented"))
ARCHIVE = Path("data/opus/Demo/v1/moses/de-en.txt.zip")
TATOEBA = Path("data/evalsets/tatoeba/demo-v1/tatoeba.deu-eng.deu")
SCORES = RUN / "scores/ems/tatoeba.json"


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x80
    path.write_bytes(content)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def cut_between_lines(path):
    content = path.read_bytes()
    os.truncate(path, content.rindex(b"\n", 0, -1) + 1)


def empty(path):
    os.truncate(path, 0)


def replace_by_text(path):
    path.write_text("<html>Sorry, this page is not there.</html>\n")


def replace_by_a_folder(path):
    path.unlink()
    path.mkdir()
