"""Writes docs/cli.md, every command with its flags, which is made from their signatures."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from ems.base.files import write_text
from ems.commands import COMMANDS
from ems.commands.flags import REQUIRED, SHARED, Bounds, Flag, Mark, flags_of, number

PAGE = Path("docs/cli.md")
OPENING = """# Commands

Made from `ems/commands/` by `python -m ems.commands.page`; do not edit this page. The rules of
the workflow call these commands, so most of them are rarely typed. `ems COMMAND --help` prints the
flags of one.
"""


def commands_page() -> str:
    """Return the text of docs/cli.md."""
    lines, module = [], ""
    for name, command in COMMANDS.items():
        if command.__module__ != module:
            module = command.__module__
            about = (sys.modules[module].__doc__ or "").partition("\n\n")[0]
            lines += ["", f"## {_heading(about)}"]
        lines += ["", f"### ems {name}", "", inspect.getdoc(command) or "", ""]
        lines += _table(flags_of(command))
    lines += ["", "## Flags of every command", "", *_table(SHARED), ""]
    return OPENING + "\n".join(lines)


def _heading(about: str) -> str:
    """Return "Make figures" for "Commands that make figures."."""
    phrase = " ".join(about.split()).partition(" that ")[2].rstrip(".")
    return phrase[:1].upper() + phrase[1:]


def _table(flags: list[Flag]) -> Iterator[str]:
    """Yield the rows of a table of flags."""
    yield from ["| flag | value | default | meaning |", "|---|---|---|---|"]
    for flag in flags:
        if Mark.HIDDEN not in flag.notes:
            cells = [f"`{flag.label}`", _value(flag), _default(flag), flag.note(str) or ""]
            yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _value(flag: Flag) -> str:
    """Say in words what a flag takes."""
    options = flag.options()
    if options.get("action") == "store_true":
        return "no value"
    several = ", several" if "nargs" in options else ""
    if "choices" in options:
        return ", ".join(f"`{choice}`" for choice in options["choices"]) + several
    if "metavar" in options:
        return f"`{options['metavar']}`{several}"
    kind = options["type"]
    if isinstance(kind, Bounds):
        return f"whole number from {kind.low:,} to {kind.high:,}{several}"
    return {str: "text", number: "number"}.get(kind, "path") + several


def _default(flag: Flag) -> str:
    if flag.default is REQUIRED:
        return "required"
    return "" if flag.default in (None, "", (), False) else f"`{flag.default}`"


if __name__ == "__main__":
    write_text(PAGE, commands_page())
