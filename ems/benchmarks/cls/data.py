"""Cross-lingual sentiment (CLS, "Amazon Review version 1"): en de fr jp, books dvd music.

`<xx>/<domain>/{train,test}.review`: XML, an `<item>` for each review with `<rating>`, `<summary>`
and `<text>`. Source: Prettenhofer and Stein (ACL 2010), https://zenodo.org/record/3251672. The test
part of the *source* language is the validation part, as no other part has labels; decontamination
therefore takes train and test.
"""

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from ems.base.errors import EmsError, mistake
from ems.corpora.evalsets.formats import Document, Subset, check_count, parts, records

CODES = ("en", "de", "fr", "jp")  # the Japanese folder is `jp`, as published
DOMAINS = ("books", "dvd", "music")
SPLITS = ("train", "test")
CLASSES = ("negative", "positive")
units = ("cls",)


def file_name(code: str, domain: str, split: str) -> str:
    return f"{code}/{domain}/{split}.review"


def file_names(code: str) -> tuple[str, ...]:
    return tuple(file_name(code, *which) for which in product(DOMAINS, SPLITS))


def read_split(folder: Path, code: str, domain: str, split: str) -> Iterator[Document]:
    """Yield the reviews of a file; raise `EmsError` for a review without text or class."""
    path, count = folder / file_name(code, domain, split), 0
    for line, fields in records(path, "item"):
        count += 1
        label = _label(fields.get("rating", ""))
        if not label and split in SPLITS:
            raise mistake("rating of a review", path=path, line=line, fields=fields.get("rating"))
        title, text = fields.get("summary", ""), fields.get("text", "")
        if not (title or text):
            raise EmsError(f"{path}: line {line}: a review without text")
        yield Document(label, title, text)
    check_count(count, path, "reviews (<item>)")


def _label(rating: str) -> str:
    """Return the class of a rating; '' for three stars or no number."""
    try:
        stars = float(rating)
    except ValueError:
        return ""
    return "" if stars == 3 or not math.isfinite(stars) else CLASSES[stars > 3]


def read_part(folder: Path, place: Subset, size: int | None) -> tuple[Path, Iterator[Document]]:
    where = place.code, place.domain, "train" if place.part == "train" else "test"
    return folder / file_name(*where), read_split(folder, *where)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    return [parts(read_split(folder, code, *which)) for which in product(DOMAINS, SPLITS)]


def read_unit(folder: Path, unit: str) -> int:
    files = product(CODES, DOMAINS, SPLITS)
    return sum(1 for which in files for _ in read_split(folder, *which))
