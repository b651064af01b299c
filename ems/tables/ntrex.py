"""The NTREX table: P@1 per language as in EMS v2 Table IV, on news instead of Tatoeba's sentences.

The paper does not score NTREX, so there are no printed rows beside ours.
"""

from pathlib import Path

from ems.tables.printed import AVERAGE, in_table_one_order
from ems.tables.rows import joined_notes, make_table, missing_notes, system_row
from ems.tables.scores import Families, Scores, in_order, joined, read_scores
from ems.tables.table import balanced_blocks
from ems.tables.write import write_table


def write_ntrex_table(
    scores: list[Path],
    out: Path,
    order: list[str] | None = None,
    families: Families | None = None,
) -> None:
    """Write P@1 (percent, mean of both directions) on NTREX as .tex, .md and .csv beside `out`.

    `scores` are the systems' ntrex.json; languages stand in the order of EMS v2 Table I; `order`
    names the systems that come first, the others follow as given; `families` are systems that share
    a row, each with languages of its own.
    Raises `EmsError` for scores of different data and for a system twice.
    """
    systems = joined(in_order(read_scores(scores, "ntrex"), order or []), families)
    languages = in_table_one_order({code for system in systems for code in system.values})
    rows = [system_row(system, languages) for system in systems]
    blocks = balanced_blocks([*languages, AVERAGE])
    notes = [_note(systems), *joined_notes(systems, families), *missing_notes(systems, languages)]
    write_table(make_table(rows, len(rows), blocks, notes), out)


def _note(systems: list[Scores]) -> str:
    counts = {count for system in systems for count in system.sentences.values()}
    least, most = min(counts), max(counts)
    many = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return (
        f"NTREX {systems[0].version}: P@1 in percent, mean of both directions, among {many} "
        "sentences of each language: those in the documents of NTREX that neither training nor "
        "validation holds. Bold: best of our systems."
    )
