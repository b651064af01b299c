"""Accuracy per language; no paper of ours prints it."""

from ems.tables.accuracy import FROM_ENGLISH, accuracy_table

TABLES = {
    "counterfactual": accuracy_table(
        "counterfactual", f"Amazon counterfactual sentences, {FROM_ENGLISH}"
    ),
}
