"""The recipes of docs/extend.md and docs/export.md, as the tests run them: files with their names,
programs, and commands."""

import re
from pathlib import Path

from conftest import ROOT

PAGE = ROOT / "docs/extend.md"
INTEROP = ROOT / "docs/export.md"
FILE = re.compile(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    (\S.*)$", re.MULTILINE)


def section(heading: str, page: Path = PAGE) -> str:
    """Return the text of a recipe."""
    return page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]


def files(heading: str, page: Path = PAGE) -> dict[str, str]:
    """Return the files that a recipe writes, by their paths in the project's folder."""
    return dict(FILE.findall(section(heading, page)))


def program(heading: str, page: Path = PAGE) -> str:
    """Return the one program of a recipe that is no file."""
    (found,) = PROGRAM.findall(FILE.sub("", section(heading, page)))
    return found


def commands(heading: str, page: Path = PAGE) -> list[str]:
    """Return the commands of a recipe, in their order."""
    return COMMAND.findall(PROGRAM.sub("", FILE.sub("", section(heading, page))))


def write_files(heading: str, folder: Path, page: Path = PAGE) -> list[str]:
    """Write the files of a recipe below `folder` and return their names."""
    written = files(heading, page)
    for name, text in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(written)
