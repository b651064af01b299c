"""EMS v2 Table XI, and Lightweight Table 3 (a model for each pair) with what its Table 10 adds."""

from ems.tables.declarations import accuracy_table
from ems.tables.study import AblationColumns

MLDOC = accuracy_table(
    "mldoc", "MLDoc, zero-shot: the topic of a news item", "ems-v2-table11-mldoc"
)
TABLES = {
    "mldoc": MLDOC,
    "mldoc_bilingual": accuracy_table(
        "mldoc_bilingual",
        "MLDoc, zero-shot, models of one pair each",
        "lightweight-table03-mldoc",
        "mldoc",
        every=True,
    ),
}
_CODES = ("de", "es", "fr", "it", "ja", "ru", "zh")
_COLUMNS = {
    "MLDoc en->X Avg.": [f"en-{code}" for code in _CODES],
    "MLDoc X->en Avg.": [f"{code}-en" for code in _CODES],
}
ABLATION = AblationColumns("MLDoc", "zero-shot accuracy", MLDOC, lambda: _COLUMNS)
