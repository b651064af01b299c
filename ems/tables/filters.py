"""The table of cleaning: pairs read = removed for each reason + kept, corpus by corpus.

Reasons stand in the order in which a pair is asked for them; a pair counts under the first that it
has. A dash is a filter that was off for the corpus.
"""

from pathlib import Path

from ems.tables.corpora import Entry, read_report
from ems.tables.table import Block, Table, Value, make_frame
from ems.tables.write import write_table

REASONS = {  # as ems.text.filters names them -> as people read them
    "cap": "Cap",
    "undecodable": "Not UTF-8",
    "both_empty": "Both empty",
    "one_empty": "One empty",
    "evaluation": "Evaluation",
    "max_bytes": "Too many bytes",
    "identical": "Same sides",
    "min_characters": "Too few characters",
    "max_characters": "Too many characters",
    "min_words": "Too few words",
    "max_words": "Too many words",
    "max_ratio": "Length ratio",
    "duplicates": "Duplicates",
}


def write_filters_table(report: Path, out: Path) -> None:
    """Write why pairs were removed as .tex, .md and .csv beside `out`.

    Raises `EmsError` for a malformed report or one whose counts do not add up.
    """
    entries = read_report(report).entries
    found = {reason for entry in entries for reason in entry.removed}
    reasons = [*(r for r in REASONS if r in found), *sorted(found - set(REASONS))]
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: (e.corpus.casefold(), e.corpus, e.role)):
        groups.setdefault((entry.corpus, entry.role), []).append(entry)
    rows = [[*names, *_sums(group, reasons)] for names, group in groups.items()]
    rows.append(["Total", "", *_sums(entries, reasons)])
    columns = ["Role", "Read", *(REASONS.get(reason, reason) for reason in reasons), "Kept"]
    table = Table(
        frame=make_frame(["Corpus", *columns], rows),
        blocks=[Block(columns)],
        rules={len(groups)},
        text={"Role"},
        notes=[
            "Sentence pairs. A pair is counted once, under the first reason from the left that it "
            "has: read is kept plus all removals. A dash: the filter was off."
        ],
    )
    write_table(table, out)


def _sums(entries: list[Entry], reasons: list[str]) -> list[Value]:
    removed: list[Value] = []
    for reason in reasons:
        counts = [entry.removed[reason] for entry in entries if reason in entry.removed]
        removed.append(sum(counts) if counts else None)
    return [sum(e.read for e in entries), *removed, sum(e.kept for e in entries)]
