"""XML that others made: flat records as a stream, and small documents.

Expat is read directly where a file is large: it alone says on which line a record begins. Entity
declarations are refused, since a few lines of them can grow to gigabytes; no benchmark has one.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from ems.base.errors import EmsError
from ems.corpora.evalsets.lines import opened

BLOCK = 1 << 16  # bytes
ENTITIES = "declares entities of its own; check where it came from"

Record = tuple[int, dict[str, str]]  # (line where it begins, its fields)


class _Records:
    """Collects the children of each element `name`, as text by their names."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.complete: list[Record] = []
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
            self.complete.append(self.record)
            self.record = None
        elif self.record is not None and name == self.field:
            self.record[1][name] = "".join(self.text).strip()
            self.field = ""

    def refuse(self, *_: object) -> None:
        raise EmsError(f"{self.path}: {ENTITIES}")

    def parse(self, block: bytes) -> list[Record]:
        """Parse a block (b"" ends the file); return the records that it completes."""
        try:
            self.parser.Parse(block, not block)
        except expat.ExpatError as error:
            problem = expat.errors.messages.get(error.code, "damaged")
            raise EmsError(f"{self.path}: line {error.lineno}: not valid XML ({problem})") from None
        complete, self.complete = self.complete, []
        return complete


def records(path: Path, name: str) -> Iterator[Record]:
    """Yield each element `name` of a file: the line where it begins, its children's text by name.

    Raises `EmsError` with the line for a file that is no XML.
    """
    collector = _Records(path, name)
    with opened(path) as reader:
        while block := reader.read(BLOCK):
            yield from collector.parse(block)
        yield from collector.parse(b"")


def tree(path: Path) -> ElementTree.Element:
    """Return a small document. Raises `EmsError` with the line for a file that is no XML."""
    with opened(path) as reader:
        content = reader.read()
    if b"<!ENTITY" in content:
        raise EmsError(f"{path}: {ENTITIES}")
    try:
        return ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise EmsError(f"{path}: line {error.position[0]}: not valid XML ({error})") from None
