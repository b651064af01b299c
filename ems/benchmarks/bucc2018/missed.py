"""Pairs that a system extracted from BUCC 2018 and that gold lacks: EMS v2 Table VIII, v1 Table 7.

The .tex has only what pdfLaTeX has letters for, Latin; sentences in other scripts are a dash there
and stand in the .md and the .csv.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ems.base.errors import Damaged
from ems.base.schema import Number, Record, fitting
from ems.bench.scores import ScoreFile, read_score_file
from ems.config.plugins import benchmark
from ems.tables.printed import in_given_order
from ems.tables.table import Table, Value, write_table

ORDER = ("de", "fr", "ru", "zh")
EXAMPLES = 3  # of each language pair, as many as Table VIII has
SENTENCE, ENGLISH = "Sentence", "English"


class _Pair(Record):
    """A pair that was extracted and that gold lacks."""

    id: str
    english_id: str
    sentence: str
    english: str
    score: Number


class _Language(Record):
    missed: list[_Pair]


class _File(Record):
    """Of a score file of BUCC, the pairs of each language."""

    details: dict[str, _Language]


def write_missed_table(scores: Iterable[Path], out: Path) -> None:
    """Write pairs that the first system extracted and gold lacks, the best of each language pair,
    with their ids, as .tex, .md and .csv beside `out`.

    Raises `EmsError` for a malformed score file.
    """
    file = read_score_file(next(iter(scores)), "bucc2018", "F1")
    try:
        missed = fitting(_File, {"details": file.details}).details
    except ValueError as error:
        raise Damaged(file.path, str(error)) from None
    table = _table(file, missed)
    write_table(table, out, latex=_latin(table))


def _table(file: ScoreFile, missed: dict[str, _Language]) -> Table:
    rows: list[list[Value]] = []
    starts = set()
    for code in in_given_order(set(missed), ORDER):
        starts.add(len(rows))
        rows += [_row(code, pair) for pair in missed[code].missed[:EXAMPLES]]
    return Table(
        ["Pair", "Score", "Ids", SENTENCE, ENGLISH],
        rows,
        rules=starts,
        text={"Ids"},
        wide={SENTENCE, ENGLISH},
        once={"Pair"},
        notes=[
            f"BUCC {file.version}, training part, system {file.system}: the extracted pairs "
            f"with the highest score that are not gold, up to {EXAMPLES} of each language pair, as "
            f"in {benchmark('bucc2018').tables['bucc_missed'].paper}."
        ],
    )


def _row(code: str, pair: _Pair) -> list[Value]:
    ids = f"{pair.id} {pair.english_id}"
    return [f"en-{code}", f"{pair.score:.3f}", ids, pair.sentence, pair.english]


def _latin(table: Table) -> Table:
    """Return the table with a dash for each sentence that pdfLaTeX cannot print, and a note."""
    shown = [[cell if _printable(str(cell)) else None for cell in row] for row in table.rows]
    if shown == table.rows:
        return table
    why = "A dash: a sentence in a script that pdfLaTeX lacks; it is in the .md and the .csv."
    return replace(table, rows=shown, notes=[*table.notes, why])


def _printable(text: str) -> bool:
    """True if pdfLaTeX has letters for it (T1, TS1): those of Windows' Latin code page it has."""
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return text.isprintable()
