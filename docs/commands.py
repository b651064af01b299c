"""Write cli.md, the page of commands, from the signatures in ems/commands/: `make pages`."""

import inspect
from collections.abc import Iterator
from pathlib import Path

from ems.commands import COMMANDS
from ems.commands.flags import REQUIRED, SHARED, Bounds, Flag, Mark, flags_of, number

PAGE = Path(__file__).with_name("cli.md")
OPENING = """# Commands

Made from `ems/commands/` by `make pages`; do not edit this page. The rules of
the workflow call these commands, so most of them are rarely typed. `ems COMMAND --help` prints the
flags of one.
"""
SECTIONS = {  # the first command of each
    "check": "Check an experiment, list what it downloads, and fetch it",
    "wikipedia": "Clean and segment text and train vocabularies",
    "shards": "Make token shards and look into them",
    "mine-documents": "Train, import, score and compare encoders",
    "export": "Make products of a trained encoder",
    "table": "Make tables and figures",
    "encode": "Use an encoder: encode lines, score and mine pairs, search, serve",
}


def page() -> str:
    """Return the page: every command with its flags; a command may open a section."""
    lines = []
    for name, command in COMMANDS.items():
        if name in SECTIONS:
            lines += ["", f"## {SECTIONS[name]}"]
        lines += ["", f"### ems {name}", "", inspect.getdoc(command) or "", ""]
        lines += _rows(flags_of(command))
    lines += ["", "## Flags of every command", "", *_rows(SHARED), ""]
    return OPENING + "\n".join(lines)


def _rows(flags: list[Flag]) -> Iterator[str]:
    """Yield the rows of a table of flags."""
    yield from ["| flag | value | default | meaning |", "|---|---|---|---|"]
    for flag in flags:
        if Mark.HIDDEN in flag.notes:
            continue
        options = flag.options()
        kind = options.get("type")
        if "choices" in options:
            value = ", ".join(f"`{choice}`" for choice in options["choices"])
        elif "metavar" in options:
            value = f"`{options['metavar']}`"
        elif isinstance(kind, Bounds):
            value = str(kind)
        else:
            value = {None: "no value", str: "text", number: "number"}.get(kind, "path")
        value += ", several" if "nargs" in options else ""
        default = f"`{flag.shown_default}`" if flag.shown_default else ""
        default = "required" if flag.default is REQUIRED else default
        cells = [f"`{flag.label}`", value, default, flag.note(str) or ""]
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
