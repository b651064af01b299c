"""The table of the vocabularies: what each makes of its languages, and its pieces by script.

Rates have three decimals, since 0.25 and 0.29 tokens per character are far apart: a fifth more
tokens of the same text. Several vocabularies stand below each other, named in each row.
"""

from pathlib import Path

from ems.base.errors import Damaged
from ems.base.files import read_json
from ems.base.schema import Count, Record
from ems.tables.printed import in_table_one_order
from ems.tables.table import Table, Value, write_table

LABELS = {"other": "no letter", "control": "control symbols", "bytes": "bytes"}  # of no script
COLUMNS = ["Language", "Lines", "Unknown (%)", "Tokens/character", "Tokens/line", "Pieces"]


class _Counts(Record):
    """Of the text of a language."""

    lines: Count
    characters: Count
    tokens: Count
    unknown: Count


class _Report(Record):
    """The report on a vocabulary: its pieces, and those of each script."""

    pieces: Count
    scripts: dict[str, Count]
    languages: dict[str, _Counts]


def write_vocabulary_table(reports: list[Path], out: Path) -> None:
    """Write the vocabulary reports (`<name>.json`) as .tex, .md and .csv beside `out`: a row per
    language, then a row per script, most pieces first.

    Raises `EmsError` when counts are missing or the scripts' pieces do not add up.
    """
    rows: list[list[Value]] = []
    rules, sizes = set(), []
    for report in reports:
        data = read_json(report, _Report)
        pieces, scripts, languages = data.pieces, data.scripts, data.languages
        if sum(scripts.values()) != pieces:
            counted = sum(scripts.values())
            raise Damaged(report, f"the scripts have {counted:,} pieces, the vocabulary {pieces:,}")
        prefix = f"{report.stem}: " if len(reports) > 1 else ""
        rules |= {len(rows), len(rows) + len(languages)} - {0}
        for code in in_table_one_order(languages):
            rows.append([prefix + code, *_rates(languages[code]), None])
        for name in sorted(scripts, key=lambda name: (-scripts[name], name)):
            label = prefix + LABELS.get(name, f"{name} script")
            rows.append([label, None, None, None, None, scripts[name]])
        sizes.append(f"{prefix}{pieces:,} pieces")
    note = (
        f"The vocabulary ({', '.join(sizes)}) on the lines that it was trained on. Unknown: tokens "
        "that are <unk>. Characters are counted without spaces. A piece is of the script of its "
        "first letter."
    )
    write_table(Table(COLUMNS, rows, rules=rules, notes=[note]), out)


def _rates(counts: _Counts) -> list[Value]:
    """Return lines, percent of unknown tokens, tokens per character and per line."""
    lines, tokens = counts.lines, counts.tokens
    ratios = [(100 * counts.unknown, tokens), (tokens, counts.characters), (tokens, lines)]
    return [lines, *(f"{count / total:.3f}" if total else None for count, total in ratios)]
