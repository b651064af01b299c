r"""One table and its three files: .tex (for papers), .md (to read) and .csv (for programs).

A score is rounded half up in decimal: a binary float would send 80.25 down and 80.15 up. Bold marks
the best of *our* rows, compared as shown; all of a tie are bold. The .tex is a bare booktabs
tabular: `\input` it in a float of your own. Stacked blocks of columns stay one tabular, like EMS v2
Table IV, so that they line up. The bytes depend only on the table.
"""

import csv
import io
import re
import shutil
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from ems.base.errors import EmsError
from ems.base.files import atomic_path, read_table, read_text, write_text

Value = float | int | str | None
Row = TypeVar("Row", bound=Hashable)
Cell = tuple[int, str]  # row number and column of a cell
_FORMULA = re.compile(r"^(?![+-]?[\d.,]*%?$)[=+\-@＝＋－＠]")  # as OWASP says
PRINTED = " (printed)"  # suffix of the labels of a paper's rows
MOST_COLUMNS = 15  # of a block

# Escaped for OT1 and T1 alike: OT1 prints `<` and `>` as Spanish marks, and `\\` would take a `[`
# or `*` at the start of the next row.
_ESCAPES = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": "$<$", ">": "$>$", "|": r"\textbar{}", "[": "{[}", "]": "{]}", "*": "{*}"},
    **{'"': r"\char34{}", "±": r"$\pm$"},
}
_TRANSLATION = str.maketrans(_ESCAPES)
WIDE = r"p{0.36\textwidth}"  # of a column of sentences; two of them fit on a page
BETWEEN_BLOCKS = r"\midrule[\heavyrulewidth]"
HALF = r"\,{\scriptsize$\pm$%s}"  # of an interval
DAGGER = r"\rlap{$^{\dagger}$}"  # no width of its own: numbers stay aligned
MARKED: dict[str, Callable[[str, str], str]] = {  # suffix -> adds a line with the origin
    ".tex": lambda text, line: f"% {line}\n{text}",
    ".md": lambda text, line: f"{line}\n\n{text}",
    ".svg": lambda text, line: f"{text}<!-- {line.replace('--', '- -')} -->\n",
}


@dataclass(frozen=True)
class Block:
    """Columns side by side; blocks are stacked, as in EMS v2 Table IV."""

    columns: list[str]
    spread: bool = False  # few wide columns share the widest block's width; headings on two lines
    rows: str = ""  # prefix of the labels of its rows


@dataclass(frozen=True)
class Table:
    """Rows and columns with their marks. The first column labels the rows."""

    columns: list[str]
    rows: list[list[Value]]  # float (with `decimals`), int, str or None (a dash)
    blocks: Sequence[Block] = ()  # default: one of all columns
    bold: set[Cell] = field(default_factory=set)
    dagger: set[Cell] = field(default_factory=set)
    rules: set[int] = field(default_factory=set)  # rows with a line above
    text: set[str] = field(default_factory=set)  # columns aligned to the left
    wide: set[str] = field(default_factory=set)  # columns of sentences, broken into lines
    once: set[str] = field(default_factory=set)  # columns shown (except in .csv) only below a rule
    italic: set[int] = field(default_factory=set)  # rows
    deviations: set[int] = field(default_factory=set)  # rows, whole in .csv, else in the row above
    notes: list[str] = field(default_factory=list)  # for comments and captions
    footnote: str = ""  # explains the dagger in the table itself
    decimals: int = 1

    @property
    def stacked(self) -> Sequence[Block]:
        return self.blocks or [Block(self.columns[1:])]

    def cell(self, row: int, column: str) -> Value:
        return self.rows[row][self.columns.index(column)]

    def rows_of(self, block: Block) -> list[int]:
        """Return the rows of a block; a printed row is left out of blocks without its values."""
        rows = []
        for row, (label, *_) in enumerate(self.rows):
            empty = all(self.cell(row, column) is None for column in block.columns)
            elsewhere = len(self.stacked) > 1 and str(label).endswith(PRINTED) and empty
            hidden = elsewhere or row in self.deviations
            if str(label).startswith(block.rows) and not hidden:
                rows.append(row)
        return rows

    def shown(self, row: int, column: str, dash: str) -> str:
        """Return a cell as text, empty if the row above has the same value (`once`)."""
        if column in self.once and row and row not in self.rules:
            return ""
        value = self.cell(row, column)
        if value is None:
            return dash
        if isinstance(value, float):
            text = f"{Decimal(rounded(value, self.decimals)):,}"
            below = row + 1 in self.deviations and column == self.columns[-1]
            spread = self.shown(row + 1, column, "") if below else ""
            return f"{text} ± {spread}" if spread else text
        return f"{value:,}" if isinstance(value, int) else value

    def half(self, row: int, column: str) -> str | None:
        """Return half of a cell's interval, '' if unknown; None for a column without intervals. The
        ends are in columns that no block has, so that only the .csv shows them.
        """
        if f"{column} low" not in self.columns:
            return None
        low, high = (self.cell(row, f"{column} {end}") for end in ("low", "high"))
        return "" if low is None else rounded((high - low) / 2, self.decimals)


def rounded(value: float, decimals: int = 1) -> str:
    """Round a score half up: 80.25 -> "80.3". Noise below 1e-6 is ignored."""
    step = Decimal(1).scaleb(-decimals)
    return str(Decimal(f"{value:.6f}").quantize(step, rounding=ROUND_HALF_UP))


def best_rows(values: Mapping[Row, float | None], lowest: bool = False) -> list[Row]:
    """Return the rows with the highest (or lowest) shown value; [] for fewer than two values."""
    shown = {row: Decimal(rounded(value)) for row, value in values.items() if value is not None}
    best = (min if lowest else max)(shown.values(), default=None)
    return [row for row, value in shown.items() if value == best and len(shown) > 1]


def balanced_blocks(columns: list[str], most: int = MOST_COLUMNS) -> list[Block]:
    """Divide columns into blocks of equal size, at most 15 wide: 59 become 15, 15, 15, 14."""
    count = -(-len(columns) // most)
    size = -(-len(columns) // max(count, 1))
    return [Block(columns[start : start + size]) for start in range(0, len(columns), size or 1)]


@cache
def headings_of(kind: str, column: str = "heading") -> dict[str, str]:
    """Return name -> heading (or note) of a kind ("fact", "reason", ...) in headings.tsv."""
    rows = read_table(files("ems.tables").joinpath("headings.tsv"))
    return {row["name"]: row[column] for row in rows if row["kind"] == kind and row[column]}


def note(name: str, **values: object) -> str:
    """Return a note on a table from headings.tsv, with its {values} filled in."""
    return headings_of("table", "note")[name].format(**values)


def write_table(table: Table, out: Path, latex: Table | None = None) -> None:
    """Write a table to `out` as .tex, .md and .csv; `latex` replaces it in the .tex."""
    write_text(out.with_suffix(".tex"), tabular(latex or table))
    write_text(out.with_suffix(".md"), markdown(table))
    write_text(out.with_suffix(".csv"), comma_separated(table))


def comma_separated(table: Table) -> str:
    """Return CSV, with an apostrophe before text that a spreadsheet would compute."""

    def written(cell: Value) -> Value:
        if isinstance(cell, str):
            return _FORMULA.sub(r"'\g<0>", re.sub(r"[\t\r\n]", " ", cell))
        return rounded(cell, table.decimals) if isinstance(cell, float) else cell

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([written(cell) for cell in row] for row in (table.columns, *table.rows))
    return text.getvalue()


def markdown(table: Table) -> str:
    """Return a Markdown table per block, then the notes as a list."""
    label, left = table.columns[0], table.text | table.wide
    parts = []
    for block in table.stacked:
        aligned = ["---" if name in left else "---:" for name in block.columns]
        lines = [[label, *map(_plain, block.columns)], ["---", *aligned]]
        for row in table.rows_of(block):
            cells = []
            for name in [label, *block.columns]:
                text = _plain(table.shown(row, name, "" if name == label else "–"))
                filled = name == label or table.cell(row, name) is not None
                text = f"*{text}*" if filled and row in table.italic else text
                text = f"**{text}**" if (row, name) in table.bold else text
                text = f"{text} ± {half}" if (half := table.half(row, name)) else text
                cells.append(text + "†" if (row, name) in table.dagger else text)
            lines.append(cells)
        parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    notes = [*table.notes, *([f"† {table.footnote}"] if table.footnote else [])]
    listed = "\n".join(f"- {_plain(note)}" for note in notes)
    return "\n\n".join([*parts, listed] if listed else parts) + "\n"


def _plain(text: str) -> str:
    """Return text on one line with the marks of Markdown escaped, and -> as an arrow."""
    return re.sub(r"([\\`*_<>\[\]|~#$])", r"\\\1", " ".join(text.replace("->", "→").split()))


# --- LaTeX


def escape(text: str) -> str:
    """Return text on one line with the special characters of LaTeX escaped."""
    return " ".join(text.split()).translate(_TRANSLATION).replace("-$>$", r"$\rightarrow$")


def tabular(table: Table) -> str:
    """Return a bare tabular, with the notes as comments before it."""
    blocks, label = table.stacked, table.columns[0]
    width = max(len(block.columns) for block in blocks)
    spans = [_spans(block, width) for block in blocks]
    spread = [of for block, of in zip(blocks, spans, strict=True) if block.spread]
    letters = [_longer_line(name) / span for of in spread for name, span in of.items()]
    tightest = max(letters, default=0)
    least = round(0.6 * tightest, 2) if tightest > 4.5 else 0  # em; evens out spread columns
    left = {**dict.fromkeys(table.text, "l"), **dict.fromkeys(table.wide, WIDE)}
    aligned = "".join(left.get(name, "r") for name in blocks[0].columns)
    lines = [f"% {' '.join(note.split())}" for note in table.notes]
    lines.append(rf"\begin{{tabular}}{{l{'r' * width if len(blocks) > 1 else aligned}}}")
    for number, (block, of) in enumerate(zip(blocks, spans, strict=True)):
        heads = [_spanned(_heading(name, block, least), of[name]) for name in block.columns]
        lines.append(BETWEEN_BLOCKS if number else r"\toprule")
        lines += [" & ".join([escape(label), *heads]) + r" \\", r"\midrule"]
        rows = table.rows_of(block)
        for before, row in zip([*rows[:1], *rows], rows, strict=False):
            lines += [r"\midrule"] if table.rules.intersection(range(before + 1, row + 1)) else []
            italic = r"\textit{%s}" if row in table.italic else "%s"
            cells = [italic % escape(table.shown(row, label, ""))]
            for name in block.columns:
                text = escape(table.shown(row, name, "--"))
                text = text if table.cell(row, name) is None else italic % text
                text = rf"\textbf{{{text}}}" if (row, name) in table.bold else text
                text += DAGGER if (row, name) in table.dagger else ""
                if (half := table.half(row, name)) is not None:
                    text += HALF % half if half else rf"\phantom{{{HALF % '0.0'}}}"
                cells.append(_spanned(text, of[name]))
            lines.append(" & ".join(cells) + r" \\")
    lines.append(r"\bottomrule")
    if table.footnote:
        text = rf"\footnotesize $^{{\dagger}}$ {escape(table.footnote)}"
        lines.append(rf"\multicolumn{{{width + 1}}}{{l}}{{{text}}} \\")
    return "\n".join([*lines, r"\end{tabular}"]) + "\n"


def _spans(block: Block, width: int) -> dict[str, int]:
    """Return column -> columns of the tabular that it spans; longer headings get more."""
    spans = dict.fromkeys(block.columns, 1)
    for _ in range(width - len(spans) if block.spread else 0):
        letters = {name: max(_longer_line(name), 10) / span for name, span in spans.items()}
        spans[max(spans, key=lambda name: (letters[name], len(name)))] += 1
    return spans


def _longer_line(heading: str) -> int:
    """Return the letters in the longer line of a heading on two lines."""
    return max(map(len, heading.rpartition(" ")[::2]))


def _heading(name: str, block: Block, least: float) -> str:
    """Return a heading at least `least` em wide, in a spread block on two lines."""
    if block.spread:
        lines = r" \\ ".join(escape(line) for line in name.rpartition(" ")[::2])
        return rf"\begin{{tabular}}[b]{{@{{}}r@{{}}}}{lines}\end{{tabular}}"
    return rf"\makebox[{least}em][r]{{{escape(name)}}}" if least else escape(name)


def _spanned(text: str, span: int) -> str:
    return rf"\multicolumn{{{span}}}{{r}}{{{text}}}" if span > 1 else text


def pages(written: str, most: int) -> list[str]:
    """Cut text that `tabular` wrote between its blocks into tabulars of at most `most` lines.
    Comments go into the first, a footnote into the last. Other text is returned whole.
    """
    lines = written.splitlines()
    if r"\toprule" not in lines or r"\bottomrule" not in lines:
        return [written]
    start, end = lines.index(r"\toprule") + 1, lines.index(r"\bottomrule")
    first, *others = "\n".join(lines[start:end]).split(f"\n{BETWEEN_BLOCKS}\n")
    parts = [first.split("\n")]
    for block in (text.split("\n") for text in others):
        if len(parts[-1]) + len(block) < most:
            parts[-1] = [*parts[-1], BETWEEN_BLOCKS, *block]
        else:
            parts.append(block)
    if len(parts) == 1:
        return [written]
    opening = next(line for line in lines if line.startswith(r"\begin{tabular}"))
    tabulars = [[opening, r"\toprule", *part, r"\bottomrule", r"\end{tabular}"] for part in parts]
    tabulars[0] = [*lines[: start - 2], *tabulars[0]]
    tabulars[-1] = [*tabulars[-1][:-2], *lines[end:]]
    return ["\n".join(tabular) + "\n" for tabular in tabulars]


def write_selected(sources: list[Path], out: Path, experiment: str) -> None:
    """Copy files into the folder `out`; a line in .tex, .md and .svg names the experiment. Raises
    `Damaged` for a file that is missing or not UTF-8, `EmsError` for a file in `out` itself.
    """
    for source in sources:
        if source.parent.resolve() == out.resolve():
            raise EmsError(f"--out {out}: {source} is in this folder; choose another one")
    for source in sources:
        if mark := MARKED.get(source.suffix):
            line = f"Experiment {experiment}: a copy of {source.as_posix()}"
            write_text(out / source.name, mark(read_text(source), line))
        else:
            with atomic_path(out / source.name) as temporary:
                shutil.copyfile(source, temporary)
