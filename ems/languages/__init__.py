"""The language table: the 62 languages of the EMS papers and their codes elsewhere (languages.tsv).

Notable choices:
- the two-letter code (iso1) names a language everywhere in EMS; a benchmark's own code is a column;
- what OPUS calls a language differs from corpus to corpus: opus.py and its tables know;
- an empty benchmark code means that the benchmark does not have the language;
- an experiment may define further languages of its own, so the table is a
  starting point, not a limit.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

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
    """All languages of the table by their iso1 code, in the table's order. `-` codes become ''."""
    text = files("ems.languages").joinpath("languages.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return {row["iso1"]: _language(row) for row in rows}


@cache
def load_tatoeba_codes() -> tuple[str, ...]:
    """The 112 languages of LASER's Tatoeba v1 by its own codes: ours and 54 that EMS never saw."""
    text = files("ems.languages").joinpath("tatoeba_v1.txt").read_text(encoding="utf-8")
    return tuple(text.split())


def _language(row: dict[str, str]) -> Language:
    codes = {key: "" if row[key] == "-" else row[key] for key in ("tatoeba_v1", "flores200")}
    return Language(**{**row, **codes})
