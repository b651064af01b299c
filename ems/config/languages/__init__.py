"""The language table: the 62 languages of the EMS papers and their codes elsewhere (languages.tsv).

The two-letter code (iso1) names a language everywhere in EMS; a benchmark's own code is a column,
empty if the benchmark does not have the language; what OPUS calls it differs from corpus to corpus
(opus.py). An experiment may define further languages of its own.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ems.base.files import read_table

HERE = Path(__file__).parent
UNSEEN = "und"  # ISO 639-2 "undetermined": a language that nothing was trained on


@dataclass(frozen=True)
class Language:
    """One language: codes, script, and its pairs with English in EMS Table I."""

    iso1: str
    tatoeba_v1: str
    flores200: str = ""
    script: str = ""
    ems_pairs: str = "-"


@cache
def load_languages() -> dict[str, Language]:
    """Return all languages of the table by their iso1 code, in its order; `-` becomes ''."""
    return {row["iso1"]: _language(row) for row in read_table(HERE / "languages.tsv")}


@cache
def load_tatoeba_codes() -> tuple[str, ...]:
    """Return LASER's own codes of its Tatoeba v1: 112 languages, 54 of which EMS never saw."""
    return tuple((HERE / "tatoeba_v1.txt").read_text(encoding="utf-8").split())


def _language(row: dict[str, str]) -> Language:
    codes = {key: "" if row[key] == "-" else row[key] for key in ("tatoeba_v1", "flores200")}
    return Language(**{**row, **codes})
