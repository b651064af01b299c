"""Each table as .tex (for papers), .md (for people) and .csv (for programs), side by side.

The bytes depend only on the table: no dates, no paths, no versions.
"""

import re
from pathlib import Path

from ems.base.files import write_text
from ems.tables.latex import tabular
from ems.tables.table import Block, Table, make_frame, rounded


def write_table(table: Table, out: Path) -> None:
    """Write `table` beside `out` as .tex, .md and .csv, each atomically."""
    write_text(out.with_suffix(".tex"), tabular(table))
    write_text(out.with_suffix(".md"), markdown(table))
    write_text(out.with_suffix(".csv"), comma_separated(table))


def comma_separated(table: Table) -> str:
    """Return one line per row: scores rounded, counts in digits, nothing for a dash."""
    rows = [
        [rounded(cell, table.decimals) if isinstance(cell, float) else cell for cell in row]
        for row in table.frame.itertuples(index=False)
    ]
    return make_frame(list(table.frame.columns), rows).to_csv(index=False, lineterminator="\n")


def markdown(table: Table) -> str:
    """Return one Markdown table per block, the notes under them as a list."""
    parts = [_markdown_block(table, block) for block in table.blocks]
    notes = [*table.notes, *([f"† {table.footnote}"] if table.footnote else [])]
    listed = "\n".join(f"- {_escape(note)}" for note in notes)
    return "\n\n".join([*parts, listed] if listed else parts) + "\n"


def _markdown_block(table: Table, block: Block) -> str:
    left = table.text | table.wide
    aligned = ["---" if name in left else "---:" for name in block.columns]
    lines = [[table.label, *map(_escape, block.columns)], ["---", *aligned]]
    for row in table.rows(block):
        label = _escape(table.shown(row, table.label, ""))
        label = f"*{label}*" if row in table.italic else label
        lines.append([label, *(_markdown_cell(table, row, name) for name in block.columns)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _markdown_cell(table: Table, row: int, column: str) -> str:
    text = _escape(table.shown(row, column, "–"))
    italic = row in table.italic and table.cell(row, column) is not None
    text = f"*{text}*" if italic else text
    text = f"**{text}**" if (row, column) in table.bold else text
    return text + "†" if (row, column) in table.dagger else text


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_<>\[\]|~#$])", r"\\\1", " ".join(text.split()))
