"""The cosines of the case study, as EMS v2 section V-H prints them in its text."""

from functools import partial

from ems.tables.declarations import noted, words_of
from ems.tables.engine import Column, Declaration, PrintedRows
from ems.tables.printed import load_table

TABLES = {
    "wordorder": Declaration(
        benchmarks={"wordorder": ""},
        metric="cosine",
        label=lambda file, row: "Cosine",
        columns=lambda systems: [Column("Cosine", ["Cosine"], "Cosine")],
        decimals=2,
        about=noted("wordorder", "wordorder"),
        printed=PrintedRows(
            words_of("wordorder")["table"]["wordorder"].paper,
            partial(load_table, "ems-v2-section5h-similarity", "Cosine", "cosine_similarity"),
        ),
    )
}
