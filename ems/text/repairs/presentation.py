"""Undo presentation forms, and letters of another language's keyboard: kaf, yeh, heh (`ﺳﻼم` ->
`سلام`; in Persian `كتابي` -> `کتابی`).

presentation.tsv has the letters that a language writes otherwise.
"""

import re
import unicodedata
from functools import partial
from pathlib import Path

from ems.base.files import read_table
from ems.text.repairs.base import Repair

# not the signs that stand for whole words, and ornate brackets
FORMS = "[\ufb00-\ufb06\ufb50-\ufbb1\ufbd3-\ufd3d\ufd50-\ufdc7\ufe70-\ufefc]"


def repair(language: str) -> Repair:
    rows = read_table(Path(__file__).with_suffix(".tsv"))
    letters = {row["wrong"]: row["right"] for row in rows if language in row["languages"].split()}
    wrong = f"[{''.join(letters)}]"
    forms = partial(re.compile(FORMS).sub, lambda form: unicodedata.normalize("NFKC", form[0]).strip())
    table = str.maketrans(letters)
    suspects = ((FORMS, ""), *([(wrong, "")] if letters else []))
    return Repair(suspects, lambda text: forms(text).translate(table))
