"""P@1 over the directions with English, the others, and all. No paper of EMS scores FLORES+."""

from ems.benchmarks.flores200.table import direction, direction_columns
from ems.tables.declarations import noted_table
from ems.tables.engine import one_block

FLORES_PLUS = noted_table(
    "flores_plus", "P@1", direction_columns, label=direction, blocks=one_block
)
TABLES = {"flores_plus": FLORES_PLUS}
