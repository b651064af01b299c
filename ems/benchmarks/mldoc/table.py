"""EMS v2 Table XI, and Lightweight Table 3 (a model for each pair) with what its Table 10 adds."""

from ems.tables.accuracy import accuracy_table

TABLES = {
    "mldoc": accuracy_table("mldoc", "MLDoc, zero-shot: the topic of a news item"),
    "mldoc_bilingual": accuracy_table(
        "mldoc_bilingual", "MLDoc, zero-shot, models of one pair each", "mldoc", every=True
    ),
}
