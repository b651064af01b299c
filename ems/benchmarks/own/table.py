"""P@1 of each direction."""

from functools import partial

from ems.tables.engine import BEST, Declaration, counted, one_each

TABLES = {
    "own": Declaration(
        benchmarks={"own": ""},
        metric="P@1",
        columns=partial(one_each, order=sorted),
        about=lambda systems: [
            f"Own text {systems[0].version}: P@1 in percent by cosine; en-da has English queries, "
            f"among {counted(systems)} Danish sentences. {BEST}"
        ],
    )
}
