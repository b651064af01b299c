"""Read the user's own text in place: two columns, two files, JSON lines, TMX, or parquet.

The file name decides the form, the first bytes the compression. Each row is a pair of texts or a
`Bad` with the reason: one bad row among a million must not stop a run.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, iterparse

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.texts import LONGEST, PACKED, bounded_lines, opened, packing
from ems.config.experiment import Corpus
from ems.config.languages import code_among
from ems.corpora.archive import count_stream_lines, reading

PARQUET, TMX, TWO_FILES = ".parquet", ".tmx", "two files"
FORMS = (".tsv", ".jsonl", ".ndjson", ".json", TMX, PARQUET)
NATIVE = ("bpt", "ept", "it", "ph", "ut")  # elements of TMX that hold markup of the format
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
SHOWN = 80  # characters of a bad row in a message
TRANSLATION = "translation"  # column or key in Hugging Face datasets
BATCH = 1000  # rows of a parquet file read at once

BAD = {  # reason -> its wording in messages
    "malformed": "not two texts",
    "undecodable": "not UTF-8",
    "nul": "with a NUL",
    "too_long": f"over {LONGEST:,} bytes",
}


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that is not a pair of texts: `reason` is a key of BAD, `text` how the row begins."""

    reason: str
    text: str


Codes = tuple[str, str]  # languages of the two sides
OwnRow = tuple[str, str] | Bad


def own_files(corpus: Corpus, pair: str) -> list[Path]:
    """Return the user's files of a language pair; in a folder the parquet files (train* if any)."""
    places = [Path(place) for place in corpus.paths[pair]]
    if len(places) > 1 or not places[0].is_dir():
        return places
    files = sorted(places[0].rglob("*.parquet"))
    return [path for path in files if path.name.startswith("train")] or files or places


def check_needs(paths: list[Path]) -> None:
    """Raise `EmsError` for an unsupported form, or if the package that reads it is missing."""
    if _form(paths) == PARQUET:
        if find_spec("pyarrow") is None:
            raise EmsError(f"{paths[0]}: reading parquet needs pyarrow: pip install -e '.[files]'")
        return
    for path in paths:
        packing(path)  # raises if it is no text, or a package to unpack it is missing


def _form(paths: list[Path]) -> str:
    path = paths[0]
    suffix = path.suffix.lower()
    suffix = Path(path.stem).suffix.lower() if suffix in PACKED else suffix
    if suffix == PARQUET or (len(paths) == 1 and suffix in FORMS):
        return suffix
    if len(paths) > 1:
        return TWO_FILES
    if path.is_dir():
        raise EmsError(f"{path}: no parquet file in this folder; save the dataset as parquet")
    raise mistake("form of a file", path=path, forms=FORMS)


def count_own(paths: list[Path]) -> int:
    """Count the rows, good and bad. Raises `EmsError` for unreadable files or unequal lengths."""
    if _form(paths) == PARQUET:
        return sum(_open_parquet(path).metadata.num_rows for path in paths)
    if _form(paths) == TMX:
        return sum(1 for _ in _units(paths[0]))
    counts = []
    for path in paths:
        with opened(path) as stream:
            counts.append(count_stream_lines(stream))
    if counts[0] != counts[-1]:
        sizes = {"one": paths[0], "has": counts[0], "other": paths[1], "others": counts[1]}
        raise mistake("unequal files", **sizes)
    return counts[0]


def read_own(paths: list[Path], codes: Codes) -> Iterator[OwnRow]:
    """Yield the rows in order; `codes` are the keys of the two sides in JSON and parquet."""
    form = _form(paths)
    if form == PARQUET:
        yield from _rows_of_parquet(paths, codes)
        return
    if form == TWO_FILES:
        for first, second in zip(*map(_texts_of, paths), strict=False):  # `count_own` compared them
            bad = next((side for side in (first, second) if isinstance(side, Bad)), None)
            yield bad or _pair(first, second)
        return
    if form == TMX:
        side = cache(partial(code_among, codes))  # "en" for "en-US"
        for unit in _units(paths[0]):
            chosen = {side(language): text for language, text in unit.items()}
            yield _row_of_object(chosen, codes, str(unit))
        return
    for text in _texts_of(paths[0]):
        if isinstance(text, Bad):
            yield text
        elif form == ".tsv":
            columns = text.split("\t")
            yield _pair(*columns) if len(columns) == 2 else _bad("malformed", text)
        else:
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                value = None  # not an object, so the row is bad
            yield _row_of_object(value, codes, text)


# --- lines


def read_columns(path: Path) -> Iterator[tuple[OwnRow, str]]:
    """Yield the pair in the first two columns of each line, and the further columns with a tab."""
    for text in _texts_of(path):
        if isinstance(text, Bad):
            yield text, ""
            continue
        first, tab, rest = text.partition("\t")
        second, more, rest = rest.partition("\t")
        yield (_pair(first, second) if tab else _bad("malformed", text)), more + rest


def _texts_of(path: Path) -> Iterator[str | Bad]:
    """Yield the text of each line without its end, LF or CR LF; `Bad` if too long or not UTF-8."""
    with opened(path) as stream:
        for line in bounded_lines(stream):
            text = line.removesuffix(b"\n").removesuffix(b"\r")
            if len(text) > LONGEST:
                yield _bad("too_long", text)
                continue
            try:
                yield text.decode()
            except UnicodeDecodeError:
                yield _bad("undecodable", text)


# --- TMX 1.4b: a unit of translation has a variant for each language


def _units(path: Path) -> Iterator[dict[str, str]]:
    """Yield language -> text of each unit. Raises `Damaged` if the file is not XML."""
    with opened(path) as stream:
        try:
            parents = []
            for event, element in iterparse(stream, ("start", "end")):
                if event == "start":
                    parents.append(element)
                    continue
                parents.pop()
                if element.tag == "tu":
                    yield dict(map(_variant, element.iter("tuv")))
                    parents[-1].clear()  # else the whole file stays in memory
        except ParseError as error:
            raise Damaged(path, f"expected TMX, an XML file ({error})") from None


def _variant(element: Element) -> tuple[str, str]:
    language = element.get(XML_LANG) or element.get("lang") or ""
    found = element.find("seg")
    segment = Element("seg") if found is None else found
    for inner in list(segment.iter()):
        if inner.tag in NATIVE:
            tail = inner.tail
            inner.clear()
            inner.tail = tail
    return language, " ".join("".join(segment.itertext()).split())


# --- parquet: a column `translation` with the codes of both languages, or a column for each code


def _rows_of_parquet(paths: list[Path], codes: Codes) -> Iterator[OwnRow]:
    for path in paths:
        file = _open_parquet(path)
        columns = _columns(path, file, codes)
        with reading(path):
            batches = file.iter_batches(BATCH, columns=columns)
        while True:
            with reading(path):
                batch = next(batches, None)
            if batch is None:
                break
            for value in _values(batch):
                yield value if isinstance(value, Bad) else _row_of_object(value, codes, str(value))


def _open_parquet(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    if not path.is_file():
        raise EmsError(f"{path}: no such file; expected a parquet file")
    with reading(path):
        return ParquetFile(path, pre_buffer=False)


def _columns(path: Path, file: Any, codes: Codes) -> list[str]:
    names = set(file.schema_arrow.names)
    if TRANSLATION in names:
        fields = {field.name for field in file.schema_arrow.field(TRANSLATION).flatten()}
        columns = [f"{TRANSLATION}.{code}" for code in codes]
        if set(columns) <= fields:
            return columns
        names = fields
    elif set(codes) <= names:
        return list(codes)
    words = {"codes": " and ".join(codes), "found": ", ".join(sorted(names))}
    raise mistake("no column", path=path, column=TRANSLATION, **words)


def _values(batch: Any, first: int = 0) -> list[Any]:
    """Return the rows of a batch as objects; a row that is not UTF-8 is a `Bad`."""
    try:
        return batch.to_pylist()
    except UnicodeDecodeError:
        if batch.num_rows == 1:
            return [_bad("undecodable", f"row {first:,} of a thousand")]
    return [value for row in range(batch.num_rows) for value in _values(batch.slice(row, 1), row)]


# --- rows


def _row_of_object(value: Any, codes: Codes, shown: str) -> OwnRow:
    """Return the pair in an object; null is an empty text. `shown` represents it in messages."""
    if isinstance(value, dict) and isinstance(value.get(TRANSLATION), dict):
        value = value[TRANSLATION]
    if not isinstance(value, dict) or any(code not in value for code in codes):
        return _bad("malformed", shown)
    texts = ["" if value[code] is None else value[code] for code in codes]
    if not all(isinstance(text, str) for text in texts):
        return _bad("malformed", shown)
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:  # "\ud800" is a lone surrogate
        return _bad("undecodable", shown)
    return _pair(*texts)


def _pair(first: str, second: str) -> OwnRow:
    """Return two texts as a row, or a `Bad` if they contain a NUL or are too long."""
    if "\0" in first or "\0" in second:
        return _bad("nul", f"{first}\t{second}")
    most_bytes = 4 * (len(first) + len(second))
    if most_bytes > LONGEST and len(f"{first}{second}".encode()) > LONGEST:
        return _bad("too_long", f"{first}\t{second}")
    return first, second


def _bad(reason: str, content: bytes | str) -> Bad:
    if isinstance(content, bytes):
        content = content[: 4 * SHOWN].decode(errors="backslashreplace")
    return Bad(reason, content.encode(errors="backslashreplace").decode()[:SHOWN])
