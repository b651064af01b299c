"""The cosines of the case study, as EMS v2 section V-H prints them in its text."""

from functools import partial

from ems.tables.declarations import noted_table
from ems.tables.engine import Column
from ems.tables.printed import load_table

_models = partial(load_table, "ems-v2-section5h-similarity", "Cosine", "cosine_similarity")
TABLES = {
    "wordorder": noted_table(
        "wordorder",
        "cosine",
        lambda systems: [Column("Cosine", ["Cosine"], "Cosine")],
        _models,
        label=lambda file, row: "Cosine",
        decimals=2,
    )
}
