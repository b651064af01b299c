"""EMS v2 Table XII."""

from ems.tables.declarations import accuracy_table

TABLES = {
    "cls": accuracy_table(
        "cls", "Amazon reviews version 1 (CLS), zero-shot", "ems-v2-table12-amazon-v1"
    ),
}
