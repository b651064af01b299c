r"""Bare booktabs tabulars: `\input` one in a float of your own (needs only the package booktabs).

Stacked blocks of columns stay one tabular, as EMS v2 Table IV is printed, so that they line up.
Text is escaped for OT1 and T1 alike: OT1 prints `<` and `>` as Spanish marks, and `\\` would take a
`[` or `*` at the start of the next row. Notes are LaTeX comments at the top.
"""

import pandas as pd

from ems.tables.table import Block, Table

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    '"': r"\char34{}",
}
_TRANSLATION = str.maketrans(_ESCAPES)
WIDE = r"p{0.36\textwidth}"  # of a column of sentences; two of them fit on a page
BETWEEN_BLOCKS = r"\midrule[\heavyrulewidth]"
DAGGER = r"\rlap{$^{\dagger}$}"  # no width of its own: numbers stay aligned


def escape(text: str) -> str:
    """Return text that LaTeX prints as it stands, on one line."""
    return " ".join(text.split()).translate(_TRANSLATION)


def tabular(table: Table) -> str:
    """Return the table as a bare tabular, its notes before it as comments."""
    width = max(len(block.columns) for block in table.blocks)
    lines = [f"% {' '.join(note.split())}" for note in table.notes]
    lines += [rf"\begin{{tabular}}{{{_column_format(table, width)}}}", r"\toprule"]
    for number, block in enumerate(table.blocks):
        lines += [BETWEEN_BLOCKS] if number else []
        lines += _block_lines(table, block, width)
    lines.append(r"\bottomrule")
    if table.footnote:
        text = rf"\footnotesize $^{{\dagger}}$ {escape(table.footnote)}"
        lines.append(rf"\multicolumn{{{width + 1}}}{{l}}{{{text}}} \\")
    return "\n".join([*lines, r"\end{tabular}"]) + "\n"


def pages(written: str, most: int) -> list[str]:
    """Return a tabular that `tabular` wrote, cut between its blocks into some of at most `most`
    lines.

    A block of more lines is one by itself. Comments go into the first, a footnote into the last.
    What is no such tabular stays as it is.
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


def _column_format(table: Table, width: int) -> str:
    if len(table.blocks) > 1:
        return "l" + "r" * width
    left = {**dict.fromkeys(table.text, "l"), **dict.fromkeys(table.wide, WIDE)}
    return "l" + "".join(left.get(name, "r") for name in table.blocks[0].columns)


def _block_lines(table: Table, block: Block, width: int) -> list[str]:
    """Return header, rule and rows of one block; pandas writes them, rules go between."""
    spans = _spans(block, width)
    least = _least_width(table, width)
    heads = [_spanned(_heading(name, block, least), spans[name]) for name in block.columns]
    rows = table.rows(block)
    cells = [_row(table, row, block, spans) for row in rows]
    frame = pd.DataFrame(cells, columns=[escape(table.label), *heads])
    written = frame.to_latex(index=False, escape=False).splitlines()
    # pandas: \begin, \toprule, header, \midrule, rows, \bottomrule, \end
    head, body = written[2:4], written[4:-2]
    ruled = []
    for before, row, line in zip([*rows[:1], *rows], rows, body, strict=False):
        crossed = table.rules.intersection(range(before + 1, row + 1))
        ruled += [r"\midrule", line] if crossed else [line]
    return [*head, *ruled]


def _row(table: Table, row: int, block: Block, spans: dict[str, int]) -> list[str]:
    italic = r"\textit{%s}" if row in table.italic else "%s"
    cells = [italic % escape(table.shown(row, table.label, ""))]
    for column in block.columns:
        text = escape(table.shown(row, column, "--"))
        text = text if table.cell(row, column) is None else italic % text
        text = rf"\textbf{{{text}}}" if (row, column) in table.bold else text
        text += DAGGER if (row, column) in table.dagger else ""
        cells.append(_spanned(text, spans[column]))
    return cells


def _spans(block: Block, width: int) -> dict[str, int]:
    """Return how many columns of the tabular each column takes: even, longer headings first."""
    spans = dict.fromkeys(block.columns, 1)
    if block.spread:
        for _ in range(width - len(spans)):
            tightest = max(
                spans, key=lambda name: (max(_length(name), 10) / spans[name], len(name))
            )
            spans[tightest] += 1
    return spans


def _length(heading: str) -> int:
    """Return letters of the longer line of a heading on two lines."""
    return max(map(len, _two_lines(heading)))


def _two_lines(heading: str) -> tuple[str, str]:
    first, _, last = heading.rpartition(" ")
    return first, last


def _least_width(table: Table, width: int) -> float:
    """Return the width in em that evens out columns over a spread block; 0 if not needed."""
    spreads = [_spans(block, width) for block in table.blocks if block.spread]
    letters = [_length(name) / span for spans in spreads for name, span in spans.items()]
    tightest = max(letters, default=0)
    return round(0.6 * tightest, 2) if tightest > 4.5 else 0


def _heading(name: str, block: Block, least: float) -> str:
    """Return a heading at least `least` em wide; on two lines in a spread block."""
    if block.spread:
        lines = r" \\ ".join(escape(line) for line in _two_lines(name))
        return rf"\begin{{tabular}}[b]{{@{{}}r@{{}}}}{lines}\end{{tabular}}"
    return rf"\makebox[{least}em][r]{{{escape(name)}}}" if least else escape(name)


def _spanned(text: str, span: int) -> str:
    return rf"\multicolumn{{{span}}}{{r}}{{{text}}}" if span > 1 else text
