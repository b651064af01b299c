"""P@1 per language as in EMS v2 Table IV, on news. The paper does not score NTREX."""

from functools import partial

from ems.tables.engine import BEST, BOTH_WAYS, Declaration, counted, one_each
from ems.tables.printed import in_table_one_order

TABLES = {
    "ntrex": Declaration(
        benchmarks={"ntrex": ""},
        metric="P@1",
        columns=partial(one_each, order=in_table_one_order),
        about=lambda systems: [
            f"NTREX {systems[0].version}: {BOTH_WAYS}, among {counted(systems)} sentences of each "
            "language: those in the documents of NTREX that neither training nor validation "
            f"holds. {BEST}"
        ],
    )
}
