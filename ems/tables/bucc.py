"""The tables of BUCC 2018: F1 per language pair (EMS v2 Table IX), and pairs that were found and
that gold lacks (Table VIII, v1 Table 7).

Notable choices:
- the note says how the threshold was chosen, which moves F1 by more than models differ;
- printed rows stand only beside scores of the data and the protocol of the paper;
- the .tex has only what pdfLaTeX has letters for, Latin; sentences in other scripts are a dash
  there and stand in the .md and the .csv.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ems.files import read_json, write_text
from ems.shapes import COUNT, TEXT, Shape, listing, mapping, record
from ems.tables.latex import tabular
from ems.tables.papers import PRINTED_IN
from ems.tables.printed import AVERAGE, in_given_order, load_table
from ems.tables.rows import Row, joined_notes, make_table, mean, missing_notes, printed_row
from ems.tables.scores import Families, Scores, in_order, joined, percentage, read_scores
from ems.tables.table import Block, Table, Value, make_frame
from ems.tables.write import comma_separated, markdown, write_table

PAPER_VERSION = "v2018"  # what docs/evalsets.md calls the published files
PAPER = {"k": 4, "margin": "ratio", "threshold": "oracle"}
ORDER = ("de", "fr", "ru", "zh")
EXAMPLES = 3  # of each language pair, as many as Table VIII has
SENTENCE, ENGLISH = "Sentence", "English"
CHOSEN = {
    "oracle": "The threshold of each pair is the one with the best F1 on these same gold pairs "
    "(oracle), as in the script that the paper used (sentence-transformers, bucc2018.py).",
    "sample": "The threshold of each pair is the one with the best F1 on its sample part; gold "
    "pairs of the part that is scored were not used.",
}

_ANY: Shape = {"type": "string"}
_TEXTS = dict.fromkeys(("id", "english_id", "sentence", "english"), _ANY)
MISSED = record(  # of what a score file has for the table of missed pairs
    {
        "directions": mapping(
            record({"missed": listing(record({**_TEXTS, "score": {"type": "number"}}))})
        )
    }
)


def write_bucc_table(
    scores: list[Path],
    out: Path,
    printed: list[str],
    order: list[str] | None = None,
    families: Families | None = None,
) -> None:
    """Write EMS v2 Table IX of some systems as .tex, .md and .csv beside `out`.

    `scores` are the systems' bucc2018.json; `printed` names models of the papers, of which those of
    Table IX are shown as printed; `order` names the systems that come first; `families` are systems
    that share a row. Raises `EmsError` for scores of different data or protocols.
    """
    found = read_scores(scores, "bucc2018", "F1", partial(percentage, key="f1"))
    systems = joined(in_order(found, order or []), families)
    codes = in_given_order({code for system in systems for code in system.values}, ORDER)
    ours = [_row(system, codes) for system in systems]
    models = load_table("ems-v2-table09-bucc", "model", "pair")
    named = [name for name in dict.fromkeys(printed) if name in models]
    beside = named if _as_the_paper(systems[0]) else []
    columns = [f"en-{code}" for code in codes]
    rows = [*ours, *(printed_row(name, models[name], columns) for name in beside)]
    notes = [*_notes(systems[0]), *joined_notes(systems, families), *missing_notes(systems, codes)]
    notes += _printed_notes(named, beside)
    write_table(make_table(rows, len(ours), [Block([*columns, AVERAGE])], notes), out)


def _row(system: Scores, codes: list[str]) -> Row:
    values: dict[str, float | None] = {f"en-{code}": system.values.get(code) for code in codes}
    return Row(system.system, {**values, AVERAGE: mean(system.values, codes)})


def _as_the_paper(system: Scores) -> bool:
    protocol = dict(system.protocol)
    same = all(protocol.get(key) == value for key, value in PAPER.items())
    return same and system.version == PAPER_VERSION


def _notes(system: Scores) -> list[str]:
    how = f"{system.setting('margin', TEXT)} margin, {system.setting('k', COUNT)} neighbours"
    return [
        f"BUCC {system.version}, training part: F1 in percent of pairs mined with {how}, exact "
        "search from both sides, each sentence in one pair. Bold: best of our systems.",
        CHOSEN[system.setting("threshold", {"enum": list(CHOSEN)})],
    ]


def _printed_notes(named: list[str], beside: list[str]) -> list[str]:
    if beside:
        where = PRINTED_IN["bucc2018"]
        return [f"Rows marked printed: {where}; they do not compete for bold."]
    if named:
        return [
            f"Printed rows left out ({', '.join(named)}): they are of BUCC {PAPER_VERSION}, ratio "
            "margin, 4 neighbours, threshold chosen on the gold pairs that are scored."
        ]
    return []


def write_missed_table(scores: list[Path], out: Path, order: list[str] | None = None) -> None:
    """Write pairs that the first system of `order` (else of `scores`) extracted and gold lacks, the
    best of each language pair, with their ids: EMS v2 Table VIII, as .tex, .md and .csv.

    Raises `EmsError` for a malformed score file.
    """
    found = read_scores(scores, "bucc2018", "F1", partial(percentage, key="f1"))
    system = in_order(found, order or [])[0]
    directions = read_json(system.path, MISSED)["directions"]
    rows: list[list[Value]] = []
    starts = set()
    for code in in_given_order(set(directions), ORDER):
        starts.add(len(rows))
        rows += [_missed_row(code, pair) for pair in directions[code]["missed"][:EXAMPLES]]
    table = Table(
        frame=make_frame(["Pair", "Score", "Ids", SENTENCE, ENGLISH], rows),
        blocks=[Block(["Score", "Ids", SENTENCE, ENGLISH])],
        rules=starts,
        text={"Ids"},
        wide={SENTENCE, ENGLISH},
        once={"Pair"},
        notes=[
            f"BUCC {system.version}, training part, system {system.system}: the extracted pairs "
            f"with the highest score that are not gold, up to {EXAMPLES} of each language pair, as "
            f"in {PRINTED_IN['bucc_missed']}."
        ],
    )
    write_text(out.with_suffix(".tex"), tabular(_latin(table)))
    write_text(out.with_suffix(".md"), markdown(table))
    write_text(out.with_suffix(".csv"), comma_separated(table))


def _missed_row(code: str, pair: dict[str, Any]) -> list[Value]:
    ids = f"{pair['id']} {pair['english_id']}"
    return [f"en-{code}", f"{pair['score']:.3f}", ids, pair["sentence"], pair["english"]]


def _latin(table: Table) -> Table:
    """The table with a dash for each sentence that pdfLaTeX has no letters for, and a note."""
    rows = table.frame.values.tolist()
    shown = [[cell if _printable(cell) else None for cell in row] for row in rows]
    if shown == rows:
        return table
    why = "A dash: a sentence in a script that pdfLaTeX lacks; it is in the .md and the .csv."
    frame = make_frame(list(table.frame.columns), shown)
    return replace(table, frame=frame, notes=[*table.notes, why])


def _printable(text: str) -> bool:
    """Whether pdfLaTeX has letters for it (T1, TS1): those of Windows' Latin code page it has."""
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return text.isprintable()
