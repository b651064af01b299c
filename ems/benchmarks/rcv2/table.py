"""The monolingual paper's Table 2."""

from ems.tables.declarations import accuracy_table

TABLES = {
    "rcv2": accuracy_table(
        "rcv2", "RCV2 headlines, zero-shot", "monolingual-table02-rcv2", every=True
    ),
}
