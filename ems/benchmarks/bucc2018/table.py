"""F1 per language pair (EMS v2 Table IX), and pairs that were found and that gold lacks (Table
VIII).

The note says how the threshold was chosen, which moves F1 by more than models differ.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from ems.base.errors import Damaged
from ems.base.schema import NonBlank, Number, Record, fitting
from ems.bench.scores import read_score_file
from ems.tables.declarations import words_of
from ems.tables.engine import BEST, Declaration, PrintedRows, headings, one_each
from ems.tables.printed import in_given_order, load_table
from ems.tables.scores import Scores
from ems.tables.table import Block, Table, Value, write_table

THRESHOLDS = {
    "oracle": "The threshold of each pair is the one with the best F1 on these same gold pairs "
    "(oracle), as in the script that the paper used (sentence-transformers, bucc2018.py).",
    "sample": "The threshold of each pair is the one with the best F1 on its sample part; gold "
    "pairs of the part that is scored were not used.",
}
CODES = ("de", "fr", "ru", "zh")
PAIRS = [f"en-{code}" for code in CODES]
EXAMPLES = 3  # of each language pair, as many as Table VIII has
SENTENCE, ENGLISH = "Sentence", "English"
_models = partial(load_table, "ems-v2-table09-bucc", "pair")


def _about(systems: Sequence[Scores]) -> list[str]:
    protocol = systems[0].file.setting
    return [
        f"BUCC {systems[0].version}, training part: F1 in percent of pairs mined with "
        f"{protocol('margin', NonBlank)} margin, {protocol('k')} neighbours, exact search from "
        f"both sides, each sentence in one pair. {BEST}",
        THRESHOLDS[protocol("threshold", Literal[tuple(THRESHOLDS)])],
    ]


BUCC = Declaration(
    benchmarks={"bucc2018": ""},
    metric="F1",
    label=lambda file, row: f"en-{row.source}",
    columns=lambda systems: one_each(systems, partial(in_given_order, first=PAIRS), _models()),
    blocks=lambda columns: [Block(headings(columns))],
    about=_about,
    printed=PrintedRows(
        words_of("bucc2018")["table"]["bucc2018"].paper,
        _models,
        "BUCC v2018, ratio margin, 4 neighbours, threshold chosen on the gold pairs that are "
        "scored",
        version="v2018",
        protocol={"k": 4, "margin": "ratio", "threshold": "oracle"},
    ),
)


# --- pairs that gold lacks


class _Pair(Record):
    id: str
    english_id: str
    sentence: str
    english: str
    score: Number


class _Language(Record):
    missed: list[_Pair]


class _File(Record):
    details: dict[str, _Language]


def write_missed_table(scores: Iterable[Path], out: Path) -> None:
    """Write pairs that the first system extracted and gold lacks, the best of each language pair,
    with their ids, as .tex, .md and .csv beside `out`.

    The .tex has only what pdfLaTeX has letters for, Latin; other sentences are a dash there.
    Raises `EmsError` for a malformed score file.
    """
    file = read_score_file(next(iter(scores)), "bucc2018", "F1")
    try:
        missed = fitting(_File, {"details": file.details}).details
    except ValueError as error:
        raise Damaged(file.path, str(error)) from None
    rows: list[list[Value]] = []
    starts = set()
    for code in in_given_order(set(missed), CODES):
        starts.add(len(rows))
        for pair in missed[code].missed[:EXAMPLES]:
            ids = f"{pair.id} {pair.english_id}"
            rows.append([f"en-{code}", f"{pair.score:.3f}", ids, pair.sentence, pair.english])
    table = Table(
        ["Pair", "Score", "Ids", SENTENCE, ENGLISH],
        rows,
        rules=starts,
        text={"Ids"},
        wide={SENTENCE, ENGLISH},
        once={"Pair"},
        notes=[
            f"BUCC {file.version}, training part, system {file.system}: the extracted pairs "
            f"with the highest score that are not gold, up to {EXAMPLES} of each language pair, as "
            f"in {words_of('bucc2018')['table']['bucc_missed'].paper}."
        ],
    )
    latin = [[cell if _printable(str(cell)) else None for cell in row] for row in rows]
    why = "A dash: a sentence in a script that pdfLaTeX lacks; it is in the .md and the .csv."
    notes = table.notes if latin == rows else [*table.notes, why]
    write_table(table, out, latex=replace(table, rows=latin, notes=notes))


def _printable(text: str) -> bool:
    """True if pdfLaTeX has letters for it (T1, TS1): those of Windows' Latin code page it has."""
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return text.isprintable()


TABLES = {"bucc2018": BUCC, "bucc_missed": write_missed_table}
