"""EMS v2 Table X: P@1 per language, the mean of both directions, as the paper's Table IV has it."""

from functools import partial

from ems.tables.declarations import retrieval_table
from ems.tables.engine import BOTH_WAYS
from ems.tables.printed import in_table_one_order, load_table

_models = partial(load_table, "ems-v2-table10-paracrawl", "language")
TABLES = {"paracrawl": retrieval_table("paracrawl", _models, in_table_one_order, BOTH_WAYS)}
