"""WMT24++: `en-<xx>_<REGION>.jsonl`, the same English segments in all files, by `segment_id`.

As the publisher asks, `target` is scored (the post-edited translation), and a segment with
`is_bad_source` is left out. Of a language with two files `read_language` reads the first.
Source: Deutsch et al. (2025), https://arxiv.org/abs/2502.12404.
"""

from collections.abc import Iterator
from pathlib import Path

from ems.base.errors import Damaged
from ems.base.files import parse_json
from ems.corpora.evalsets.formats import Document, check_count, numbered_lines, parts

REGIONS = Path(__file__).with_name("regions.txt")  # languages and regions of the files
OTHERS = {"nb": "no", "tl": "fil", "en": "de"}  # any file has the English side


def units(code: str) -> tuple[str, ...]:
    own, regions = OTHERS.get(code, code), REGIONS.read_text("utf-8").split()
    return tuple(f"en-{region}" for region in regions if region.partition("_")[0] == own)


def file_names(code: str) -> tuple[str, ...]:
    return tuple(f"{unit}.jsonl" for unit in units(code))


def read_language(folder: Path, code: str) -> list[str]:
    return [" ".join(text.split()) for text in _texts(folder / file_names(code)[0], code)]


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    texts = [_texts(folder / name, code) for name in file_names(code)]
    return [parts(Document("", "", text) for text in side) for side in texts]


def read_unit(folder: Path, unit: str) -> int:
    return len(_texts(folder / f"{unit}.jsonl", unit))


def _texts(path: Path, code: str) -> list[str]:
    return read_segments(path, "source" if code == "en" else "target")[0]


def read_segments(path: Path, *keys: str) -> list[list[str]]:
    """Return a column per key, of the segments that are not bad. Raises `Damaged` with the line."""
    segments = []
    for number, line in numbered_lines(path):
        try:
            row = parse_json(line)
            texts = [] if row["is_bad_source"] else [row[key].strip() for key in keys]
        except (ValueError, KeyError, TypeError, AttributeError):
            texts = [""]
        if not all(texts):
            expected = f"expected a segment with is_bad_source, {', '.join(keys)}"
            raise Damaged(path, f"line {number}: {expected}")
        segments += [texts] if texts else []
    check_count(len(segments), path, "segments")
    return [list(column) for column in zip(*segments, strict=True)]
