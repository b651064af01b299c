"""Files of a finished run of the experiment `tiny`, and what a disk may do to them."""

import os
from pathlib import Path

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
    """Turn the highest bit of the byte in the middle."""
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
