"""P@1 per language on news, in the form of EMS v2 Table IV. The paper does not score NTREX."""

from functools import partial

from ems.tables.engine import BEST, BOTH_WAYS, Declaration, counted, one_each
from ems.tables.printed import in_table_one_order

TABLES = {
    "ntrex": Declaration(
        benchmarks={"ntrex": ""},
        metric="P@1",
        columns=partial(one_each, order=in_table_one_order),
        about=lambda systems: [
            f"NTREX {systems[0].version}: {BOTH_WAYS}, among {counted(systems)} sentences per "
            f"language, in documents outside training and validation. {BEST}"
        ],
    )
}
