"""XML of strangers: flat records as a stream, and small documents; entities of their own refused.

Expat is read directly where a file is large: it alone says on which line a record begins. An entity
declaration is refused, since a few lines of them can grow to gigabytes; no benchmark has one.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from ems.errors import EmsError
from ems.evalsets.lines import opened

BLOCK = 1 << 16  # bytes

Record = tuple[int, dict[str, str]]  # (line where it begins, its fields)


class _Records:
    """Collects the children of each element `name`, as text by their names."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.found: list[Record] = []
        self.record: Record | None = None
        self.field, self.text = "", [""]
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.add
        self.parser.EntityDeclHandler = self.refuse

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == self.name:
            self.record = (self.parser.CurrentLineNumber, {})
        elif self.record is not None and not self.field:
            self.field, self.text = name, []

    def add(self, text: str) -> None:
        if self.field:
            self.text.append(text)

    def end(self, name: str) -> None:
        if name == self.name and self.record is not None:
            self.found.append(self.record)
            self.record = None
        elif self.record is not None and name == self.field:
            self.record[1][name] = "".join(self.text).strip()
            self.field = ""

    def refuse(self, *_: object) -> None:
        raise EmsError(f"{self.path}: declares entities of its own; check where it came from")

    def parse(self, block: bytes, last: bool) -> list[Record]:
        try:
            self.parser.Parse(block, last)
        except expat.ExpatError as error:
            what = expat.errors.messages.get(error.code, "spoilt")
            raise EmsError(f"{self.path}: line {error.lineno}: not valid XML ({what})") from None
        found, self.found = self.found, []
        return found


def records(path: Path, name: str) -> Iterator[Record]:
    """Each element `name` of a file: the line where it begins, and its children's text by name.

    Raises `EmsError` with the line for a file that is no XML.
    """
    collector = _Records(path, name)
    with opened(path) as reader:
        while block := reader.read(BLOCK):
            yield from collector.parse(block, False)
        yield from collector.parse(b"", True)


def tree(path: Path) -> ElementTree.Element:
    """A small document as a whole. Raises `EmsError` with the line for one that is no XML."""
    with opened(path) as reader:
        content = reader.read()
    if b"<!ENTITY" in content:
        raise EmsError(f"{path}: declares entities of its own; check where it came from")
    try:
        return ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        line = error.position[0]
        raise EmsError(f"{path}: line {line}: not valid XML ({error})") from None
