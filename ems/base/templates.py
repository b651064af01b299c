"""Fill in templates of Jinja: pages, experiments, model cards, tables for a terminal."""

from pathlib import Path
from typing import Any


def rendered(template: Path, **values: Any) -> str:
    """Return the text of a template. A value that it lacks is an error, not an empty text."""
    from jinja2 import Environment, StrictUndefined  # imported late: not every command needs it

    spaces = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    escape = ".html" in template.suffixes
    environment = Environment(undefined=StrictUndefined, autoescape=escape, **spaces)
    environment.filters["aligned"] = aligned
    return environment.from_string(template.read_text(encoding="utf-8")).render(**values)


def aligned(table: str, sides: str) -> str:
    """Align lines of cells that ` | ` separates; `sides`: l(eft) or r(ight) per column."""
    rows = [line.split(" | ") for line in table.splitlines()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    marks = ({"l": "<", "r": ">"}[side] for side in sides)
    line = "  ".join(f"{{:{mark}{width}}}" for mark, width in zip(marks, widths, strict=True))
    return "".join(f"{line.format(*row).rstrip()}\n" for row in rows)
