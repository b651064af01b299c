"""One table, before it becomes LaTeX, Markdown or CSV.

A score is rounded half up in decimal: the mean of two directions ends in 5 every other time, and a
binary float would send 80.25 down and 80.15 up. Bold marks the best of *our* rows, judged on what
is shown, ties all bold. LaBSE stands in italics and does not compete, as in the papers: it is their
upper bound (EMS v2, section V), printed or measured by us.
"""

import re
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pandas as pd

Value = float | int | str | None
Place = tuple[int, str]  # row number and column of a cell
PRINTED = " (printed)"  # how the label of a paper's row ends
UPPER_BOUND = re.compile(r"(?:.*: )?labse(?: \(printed\)|, .*)?", re.IGNORECASE)  # a row's label
UPPER_BOUND_NOTE = "In italics: LaBSE, the papers' upper bound, which does not compete for bold."


@dataclass(frozen=True)
class Block:
    """Columns that stand side by side; blocks are stacked, as in EMS v2 Table IV.

    `spread` lets few wide columns share the width of the widest block; the last word of their
    headings goes on a second line. `rows` is how the labels of its rows begin, where not all are.
    """

    columns: list[str]
    spread: bool = False
    rows: str = ""


@dataclass(frozen=True)
class Table:
    """Rows and columns with their marks. The first column of `frame` labels the rows.

    Cells of `frame` are float (shown with `decimals`), int, str or None (a dash). `rules` are the
    rows that a line precedes, `text` the columns aligned to the left, `wide` those of sentences,
    broken into lines, `once` those that people see only in the first row after a rule, since the
    rows below repeat it. `italic` are whole rows.
    `notes` are for comments and captions, `footnote` explains the dagger in the table itself.
    """

    frame: pd.DataFrame
    blocks: list[Block]
    bold: set[Place] = field(default_factory=set)
    dagger: set[Place] = field(default_factory=set)
    rules: set[int] = field(default_factory=set)
    text: set[str] = field(default_factory=set)
    wide: set[str] = field(default_factory=set)
    once: set[str] = field(default_factory=set)
    italic: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    footnote: str = ""
    decimals: int = 1

    @property
    def label(self) -> str:
        """Name of the column that labels the rows."""
        return str(self.frame.columns[0])

    def cell(self, row: int, column: str) -> Value:
        """Return the value of one cell."""
        return self.frame[column].iloc[row]

    def rows(self, block: Block) -> list[int]:
        """Return the rows of a block: of several blocks, a printed row stands in those it has a
        value in (mUSE has one in Table V, and none in Table IV).
        """
        labels = self.frame.iloc[:, 0]
        every = [row for row, label in enumerate(labels) if label.startswith(block.rows)]
        if len(self.blocks) == 1:
            return every
        bare = self.frame[block.columns].isna().all(axis=1)
        return [
            row for row in every if not (bare[row] and self.frame.iloc[row, 0].endswith(PRINTED))
        ]

    def shown(self, row: int, column: str, dash: str) -> str:
        """Return a cell as people read it: `dash` for no value, nothing where a row above has said
        it.
        """
        if column in self.once and row and row not in self.rules:
            return ""
        value = self.cell(row, column)
        if value is None:
            return dash
        if isinstance(value, float):
            return f"{Decimal(rounded(value, self.decimals)):,}"
        return f"{value:,}" if isinstance(value, int) else value


def one_block(columns: list[str], rows: list[list[Value]], **marks: Any) -> Table:
    """Return a table of a single block; the first of `columns` labels the rows."""
    return Table(make_frame(columns, rows), [Block(columns[1:])], **marks)


def make_frame(columns: list[str], rows: list[list[Value]]) -> pd.DataFrame:
    """Return a frame that keeps int, float, str and None apart."""
    return pd.DataFrame(rows, columns=columns, dtype=object)


def rounded(value: float, decimals: int = 1) -> str:
    """Return a score with its decimals, halves up: 80.25 -> "80.3". Noise below 1e-6 is ignored."""
    step = Decimal(1).scaleb(-decimals)
    return str(Decimal(f"{value:.6f}").quantize(step, rounding=ROUND_HALF_UP))


def upper_bounds(frame: pd.DataFrame) -> set[int]:
    """Return the rows of LaBSE, by their labels."""
    labels = frame.iloc[:, 0]
    return {row for row, label in enumerate(labels) if UPPER_BOUND.fullmatch(label)}


def best_places(frame: pd.DataFrame, ours: list[int], lowest: bool = False) -> set[Place]:
    """Return cells with the highest (or lowest) shown value of their column among the rows `ours`
    but LaBSE's.
    """
    places: set[Place] = set()
    ours = [row for row in ours if row not in upper_bounds(frame)]
    for column in frame.columns[1:]:
        values = {row: frame[column].iloc[row] for row in ours}
        shown = {row: Decimal(rounded(v)) for row, v in values.items() if v is not None}
        if len(shown) > 1:
            best = min(shown.values()) if lowest else max(shown.values())
            places |= {(row, column) for row, value in shown.items() if value == best}
    return places


def balanced_blocks(columns: list[str], most: int = 15) -> list[Block]:
    """Return columns in stacked blocks of like size, at most 15 wide: 59 become 15, 15, 15, 14."""
    count = -(-len(columns) // most)
    size = -(-len(columns) // max(count, 1))
    return [Block(columns[start : start + size]) for start in range(0, len(columns), size or 1)]
