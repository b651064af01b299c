"""Accuracy per language; no paper of ours prints it."""

from ems.tables.accuracy import accuracy_table

TABLES = {
    "counterfactual": accuracy_table("counterfactual", "Amazon counterfactual sentences"),
}
