"""Accuracy per language; no paper of ours prints it."""

from ems.tables.declarations import accuracy_table

TABLES = {
    "sib200": accuracy_table("sib200", "SIB-200, seven topics"),
}
