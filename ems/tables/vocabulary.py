"""The table of the vocabularies: what each makes of its languages, and its pieces by script.

Notable choices:
- rates have three decimals, since 0.25 and 0.29 tokens per character are far apart: a fifth more
  tokens of the same text;
- scripts stand below the languages, most pieces first; a script has no lines and a language no
  pieces of its own;
- several vocabularies stand below each other, their names before the languages and scripts.
"""

from pathlib import Path

from ems.damaged import Damaged
from ems.files import read_json
from ems.shapes import COUNT, mapping, record
from ems.tables.printed import in_table_one_order
from ems.tables.table import Block, Table, Value, make_frame
from ems.tables.write import write_table

LABELS = {"other": "no letter", "control": "control symbols", "bytes": "bytes"}  # of no script
COUNTED = dict.fromkeys(("lines", "characters", "tokens", "unknown"), COUNT)
REPORT = record({"pieces": COUNT, "scripts": mapping(COUNT), "languages": mapping(record(COUNTED))})
COLUMNS = ["Lines", "Unknown (%)", "Tokens/character", "Tokens/line", "Pieces"]


def write_vocabulary_table(reports: list[Path], out: Path) -> None:
    """Write the vocabulary reports (`<name>.json`) as .tex, .md and .csv beside `out`.

    Raises `EmsError` when counts are missing or the scripts' pieces do not add up.
    """
    rows: list[list[Value]] = []
    rules, sizes = set(), []
    for report in reports:
        pieces, languages, scripts = _rows(report)
        name = report.stem if len(reports) > 1 else ""
        rules |= {len(rows), len(rows) + len(languages)} - {0}
        prefix = name and f"{name}: "
        rows += [[f"{prefix}{row[0]}", *row[1:]] for row in (*languages, *scripts)]
        sizes.append(f"{prefix}{pieces:,} pieces")
    table = Table(
        frame=make_frame(["Language", *COLUMNS], rows),
        blocks=[Block(COLUMNS)],
        rules=rules,
        notes=[
            f"The vocabulary ({', '.join(sizes)}) on the lines that it was trained on. Unknown: "
            "tokens that are <unk>. Characters are counted without spaces. A piece is of the "
            "script of its first letter."
        ],
    )
    write_table(table, out)


def _rows(report: Path) -> tuple[int, list[list[Value]], list[list[Value]]]:
    """The number of pieces, a row per language, and a row per script."""
    pieces, scripts, languages = _read(report)
    return (
        pieces,
        [_language_row(code, languages[code]) for code in in_table_one_order(set(languages))],
        [
            [LABELS.get(name, f"{name} script"), None, None, None, None, scripts[name]]
            for name in sorted(scripts, key=lambda name: (-scripts[name], name))
        ],
    )


def _read(path: Path) -> tuple[int, dict[str, int], dict[str, dict[str, int]]]:
    data = read_json(path, REPORT)
    pieces, scripts = data["pieces"], data["scripts"]
    if sum(scripts.values()) != pieces:
        raise Damaged(
            path, f"the scripts have {sum(scripts.values()):,} pieces, the vocabulary {pieces:,}"
        )
    return pieces, scripts, data["languages"]


def _language_row(code: str, counts: dict[str, int]) -> list[Value]:
    return [
        code,
        counts["lines"],
        _rate(100 * counts["unknown"], counts["tokens"]),
        _rate(counts["tokens"], counts["characters"]),
        _rate(counts["tokens"], counts["lines"]),
        None,
    ]


def _rate(count: int, total: int) -> str | None:
    return f"{count / total:.3f}" if total else None
