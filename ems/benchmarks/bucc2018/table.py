"""F1 per language pair (EMS v2 Table IX), and extracted pairs missing from the gold standard (Table
VIII).

The note says how the threshold was chosen: it changes F1 more than the choice of model does.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ems.base.errors import Damaged
from ems.base.records import Record, fitting, only
from ems.base.texts import is_plain
from ems.bench.scores import read_score_file
from ems.tables.declarations import noted_table, words_of
from ems.tables.engine import one_block, one_each
from ems.tables.printed import in_given_order, load_table
from ems.tables.table import Table, Value, write_table

CODES = ("de", "fr", "ru", "zh")
PAIRS = [f"en-{code}" for code in CODES]
EXAMPLES = 3  # per language pair, as in Table VIII
SENTENCE, ENGLISH = "Sentence", "English"
_models = partial(load_table, "ems-v2-table09-bucc", "pair")


BUCC = noted_table(
    "bucc2018",
    "F1",
    lambda systems: one_each(systems, partial(in_given_order, first=PAIRS), _models()),
    _models,
    label=lambda file, row: f"en-{row.source}",
    blocks=one_block,
)


class _Pair(Record):
    id: str
    english_id: str
    sentence: str
    english: str
    score: float


def write_missed_table(scores: Iterable[Path], out: Path) -> None:
    """Write the best extracted pairs of the first system that are missing from the gold standard,
    as `out`, .md and .csv. pdfLaTeX supports Latin script only, so the .tex has a dash for other
    sentences. Raises `EmsError` for a malformed score file.
    """
    file = read_score_file(next(iter(scores)), "bucc2018", "F1")
    try:
        missed = fitting(dict[str, only("missed", list[_Pair])], file.details, "details")
    except ValueError as error:
        raise Damaged(file.path, str(error)) from None
    rows: list[list[Value]] = []
    starts = set()
    for code in in_given_order(set(missed), CODES):
        starts.add(len(rows))
        for pair in missed[code].missed[:EXAMPLES]:
            ids = f"{pair.id} {pair.english_id}"
            rows.append([f"en-{code}", f"{pair.score:.3f}", ids, pair.sentence, pair.english])
    words = words_of("bucc2018")["table"]["bucc_missed"]
    own = {"system": file.system, "examples": EXAMPLES, "paper": words.paper}
    note = words.note.format(version=file.version, **own)
    table = Table(
        ["Pair", "Score", "Ids", SENTENCE, ENGLISH],
        rows,
        rules=starts,
        text={"Ids"},
        wide={SENTENCE, ENGLISH},
        once={"Pair"},
        notes=[note],
    )
    latin = [[cell if _is_latin(str(cell)) else None for cell in row] for row in rows]
    dash = "A dash replaces a sentence in a script that pdfLaTeX lacks; see the .md or .csv file."
    notes = table.notes if latin == rows else [*table.notes, dash]
    write_table(table, out, latex=replace(table, rows=latin, notes=notes))


def _is_latin(text: str) -> bool:
    """Return True if pdfLaTeX (T1, TS1) has all characters; it has the Windows Latin code page."""
    return is_plain(text) and text.encode("cp1252", "ignore").decode("cp1252") == text


TABLES = {"bucc2018": BUCC, "bucc_missed": write_missed_table}
