"""FLORES+: devtest/<code>.jsonl with 1,012 sentences and dev/<code>.jsonl with 997, gated.

Version 4.6, at a fixed commit. Each line has the fields id, iso_639_3, iso_15924, glottocode,
variant, text, url, domain, topic, has_image, has_hyperlink, last_updated and split; sentences with
one id are translations. Earlier versions were parquet, which is read too. Devtest is scored, and
training has neither part. Source: https://huggingface.co/datasets/openlanguagedata/flores_plus and
its CHANGELOG.md, https://github.com/openlanguagedata/flores.
"""

from functools import partial
from pathlib import Path

from ems.corpora.evalsets.formats import texts_by_id

PARTS = ("devtest", "dev")


def file_names(code: str, suffix: str = ".jsonl") -> tuple[str, ...]:
    return tuple(f"{part}/{code}{suffix}" for part in PARTS)


other_names = partial(file_names, suffix=".parquet")


def read_language(folder: Path, code: str) -> list[str]:
    return read_sides(folder, code)[0]


def read_sides(folder: Path, code: str) -> list[list[str]]:
    return [texts_by_id(folder / name, "id", "text") for name in file_names(code)]


def read_unit(folder: Path, unit: str) -> int:
    return sum(map(len, read_sides(folder, unit)))
