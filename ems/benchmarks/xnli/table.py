"""The monolingual paper's Table 1."""

from ems.tables.accuracy import FROM_ENGLISH, accuracy_table

TABLES = {
    "xnli": accuracy_table("xnli", f"XNLI, {FROM_ENGLISH}", "monolingual-table01-xnli", every=True),
}
