"""The monolingual paper's Table 1."""

from ems.tables.declarations import accuracy_table

TABLES = {
    "xnli": accuracy_table("xnli", "XNLI", "monolingual-table01-xnli", every=True),
}
