"""MLDoc in the ablation: the mean over directions from English, and over directions to English."""

from ems.tables.declarations import accuracy_table
from ems.tables.study import AblationColumns

_CODES = ("de", "es", "fr", "it", "ja", "ru", "zh")
_COLUMNS = {
    "MLDoc en->X Avg.": [f"en-{code}" for code in _CODES],
    "MLDoc X->en Avg.": [f"{code}-en" for code in _CODES],
}
ABLATION = AblationColumns("zero-shot accuracy", accuracy_table("mldoc", "mldoc"), lambda: _COLUMNS)
