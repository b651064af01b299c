"""EMS v2 Table X: P@1 per language. The paper does not say of which direction; ours is the mean of
both, as in its Table IV.
"""

from ems.tables.declarations import retrieval_table
from ems.tables.engine import BOTH_WAYS, Models, one_each
from ems.tables.printed import in_table_one_order, load_table


def _models() -> Models:
    return load_table("ems-v2-table10-paracrawl", "language")


PARACRAWL = retrieval_table(
    "paracrawl",
    "v5",
    "ratio",
    _models,
    lambda systems: one_each(systems, in_table_one_order, _models()),
    BOTH_WAYS,
)
TABLES = {"paracrawl": PARACRAWL}
