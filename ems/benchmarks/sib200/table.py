"""Accuracy per language; no paper of ours prints it."""

from ems.tables.accuracy import FROM_ENGLISH, accuracy_table

TABLES = {
    "sib200": accuracy_table("sib200", f"SIB-200, seven topics, {FROM_ENGLISH}"),
}
