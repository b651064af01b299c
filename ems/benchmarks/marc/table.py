"""EMS v2 Table XIII."""

from ems.tables.declarations import accuracy_table

TABLES = {
    "marc": accuracy_table(
        "marc", "Amazon reviews version 2 (MARC), zero-shot", "ems-v2-table13-amazon-v2"
    ),
}
