"""The recipes of docs/extend.md, as the tests run them: files with their names, and commands."""

import re
from pathlib import Path

from conftest import ROOT

PAGE = ROOT / "docs/extend.md"
FILE = re.compile(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    (\S.*)$", re.MULTILINE)


def section(heading: str) -> str:
    """Return the text of a recipe."""
    return PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]


def files(heading: str) -> dict[str, str]:
    """Return the files that a recipe writes, by their paths in the project's folder."""
    return dict(FILE.findall(section(heading)))


def commands(heading: str) -> list[str]:
    """Return the commands of a recipe, in their order."""
    return COMMAND.findall(FILE.sub("", section(heading)))


def write_files(heading: str, folder: Path) -> list[str]:
    """Write the files of a recipe below `folder` and return their names."""
    written = files(heading)
    for name, text in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(written)
