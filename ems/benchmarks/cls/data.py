"""Cross-lingual sentiment (CLS, "Amazon Review version 1"): en de fr jp, books dvd music.

`<xx>/<domain>/{train,test,unlabeled}.review` of cls-acl10-unprocessed: XML, an `<item>` for each
review with `<rating>`, `<summary>`, `<text>` and more; 2,000 reviews in train and in test. Source:
Prettenhofer and Stein, "Cross-Language Text Classification using Structural Correspondence
Learning" (ACL 2010), https://zenodo.org/record/3251672. EMS v2 section V-F (Table XII).

Notable choices:
- more than three stars are positive, fewer negative; train and test hold no review of three;
- the Japanese folder is `jp`, as published;
- decontamination takes train and test, of which a benchmark draws its validation part, and leaves
  out `unlabeled`, which no benchmark reads.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from ems.errors import EmsError
from ems.evalsets.documents import Document, parts
from ems.evalsets.lines import some
from ems.evalsets.markup import records

CODES = ("en", "de", "fr", "jp")
DOMAINS = ("books", "dvd", "music")
SPLITS = ("train", "test")
LABELS = ("negative", "positive")


def file_name(code: str, domain: str, split: str) -> str:
    """The file of one language, domain and split ("train", "test" or "unlabeled")."""
    return f"{code}/{domain}/{split}.review"


def file_names(code: str) -> tuple[str, ...]:
    """The files of one language ("en", "de", "fr", "jp") with a rating each: train and test."""
    return tuple(file_name(code, domain, split) for domain in DOMAINS for split in SPLITS)


def units(code: str) -> tuple[str, ...]:
    """The archive, which holds all languages."""
    return ("cls",)


def read_split(folder: Path, code: str, domain: str, split: str) -> Iterator[Document]:
    """The reviews of one file. Raises `EmsError` with the line of a review without text or class.

    A review of `unlabeled` has the class that its rating tells, '' for three stars or none.
    """
    path, count = folder / file_name(code, domain, split), 0
    for line, fields in records(path, "item"):
        count += 1
        label = _label(fields.get("rating", ""))
        if not label and split in SPLITS:
            raise EmsError(
                f"{path}: line {line}: a review with the rating {fields.get('rating')!r}; expected "
                "1, 2, 4 or 5"
            )
        title, text = fields.get("summary", ""), fields.get("text", "")
        if not (title or text):
            raise EmsError(f"{path}: line {line}: a review without text")
        yield Document(label, title, text)
    some(count, path, "reviews (<item>)")


def _label(rating: str) -> str:
    try:
        stars = float(rating)
    except ValueError:
        return ""
    return "" if stars == 3 or not math.isfinite(stars) else LABELS[stars > 3]


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    """What training must not see of the reviews of one language, of all domains."""
    return [
        parts(read_split(folder, code, domain, split)) for domain in DOMAINS for split in SPLITS
    ]


def read_unit(folder: Path, unit: str) -> int:
    """The number of reviews of the archive, of all languages."""
    return sum(
        1
        for code in CODES
        for domain in DOMAINS
        for split in SPLITS
        for _ in read_split(folder, code, domain, split)
    )
