"""Golden files: text that a test compares whole, kept in tests/golden/ and reviewed as a diff.

`make golden` writes them again.
"""

import os

from conftest import ROOT

FOLDER = ROOT / "tests" / "golden"


def check(name, text):
    """Compare a text with tests/golden/NAME; with EMS_GOLDEN set, write the file instead."""
    path = FOLDER / name
    if os.environ.get("EMS_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path}: no such file; run `make golden` and review the diff"
    assert text == path.read_text(encoding="utf-8")


def check_table(name, out):
    """Compare the .md and the .tex of a written table with tests/golden/tables/NAME.md."""
    text, tex = (out.with_suffix(suffix).read_text(encoding="utf-8") for suffix in (".md", ".tex"))
    check(f"tables/{name}.md", f"{text}\n```latex\n{tex}```\n")


def replay(name, act):
    """Check a table of cases: each line of tests/golden/NAME, followed by what `act` makes of it.

    Results are indented; lines that begin with # are comments.
    """
    text = (FOLDER / name).read_text(encoding="utf-8")
    lines = []
    for line in text.splitlines():
        if line.strip() and not line.startswith(" "):
            lines.append(line)
            if not line.startswith("#"):
                lines += [f"    {part}" for part in act(line).splitlines()]
    check(name, "\n".join([*lines, ""]))
