"""Accuracy per language; no paper of ours prints it."""

from ems.tables.declarations import accuracy_table

TABLES = {
    "counterfactual": accuracy_table("counterfactual", "Amazon counterfactual sentences"),
}
