"""The cosines of the case study, as EMS v2 section V-H prints them in its text."""

from functools import partial

from ems.tables.declarations import noted, printed_rows
from ems.tables.engine import Column, Declaration
from ems.tables.printed import load_table

_models = partial(load_table, "ems-v2-section5h-similarity", "Cosine", "cosine_similarity")
TABLES = {
    "wordorder": Declaration(
        benchmarks={"wordorder": ""},
        metric="cosine",
        label=lambda file, row: "Cosine",
        columns=lambda systems: [Column("Cosine", ["Cosine"], "Cosine")],
        decimals=2,
        about=noted("wordorder", "wordorder"),
        printed=printed_rows("wordorder", "wordorder", _models),
    )
}
