"""Write cli.md, the page of commands, from the signatures in ems/commands/: `make pages`."""

import re
from collections.abc import Iterator
from pathlib import Path

from ems.commands import COMMANDS
from ems.commands.flags import REQUIRED, SHARED, Assignment, Bounds, Flag, Mark, flags_of, number
from ems.commands.help import example, overview, summary

PAGE = Path(__file__).with_name("cli.md")
OPENING = """# Commands

Made from `ems/commands/` by `make pages`; do not edit this page. `ems --help` lists the commands,
and `ems COMMAND --help` shows the flags of one with an example. The examples work in the folder of
the project after `make all`, except five, whose data the demo does not have: `import-released`,
`mine-documents`, `multiway`, `quickstart` and `wikipedia`.
"""


def page() -> str:
    """Return the page: every command under its group, with an example and its flags."""
    lines = []
    for line in overview(COMMANDS, stages=True).splitlines():
        if line.endswith(":"):
            lines += ["", f"## {line[:-1]}"]
        elif line.startswith("  "):
            name = line.split()[0]
            shown = example(name).replace("\n", "\n    ")
            lines += ["", f"### ems {name}", "", summary(COMMANDS[name]), "", f"    {shown}", ""]
            lines += _rows(flags_of(COMMANDS[name]))
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
        elif isinstance(kind, Bounds):
            value = str(kind)
        elif isinstance(kind, Assignment):
            value = f"`{kind.form}`"
        else:
            value = {None: "no value", str: "text", number: "number"}.get(kind, "path")
        value += ", several" if "nargs" in options else ""
        default = f"`{flag.shown_default}`" if flag.shown_default else ""
        default = "required" if flag.default is REQUIRED else default
        cells = [f"`{flag.label}`", value, default, flag.note(str) or ""]
        yield f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(cell: str) -> str:
    """Escape `|` in a cell of a table, and `<` outside of code, which would begin a tag."""
    escaped = cell.replace("|", "&#124;")
    return re.sub("(`[^`]*`)|<", lambda match: match[1] or "&lt;", escaped)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
