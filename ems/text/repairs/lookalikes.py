"""Undo letters of another script that look alike, inside a word (`Mосква`, Latin M -> `Москва`).

lookalikes.tsv has the letters. The script of most letters wins, in a draw that of the language. A
word with a letter without a double there stays as it is, and so do short codes like CO2.
"""

import re
from functools import partial
from pathlib import Path

from ems.base.files import read_table
from ems.corpora.identifier import letters_of
from ems.text.repairs.base import Repair

LATIN = "[A-Za-zÀ-ÖØ-öø-ɏ]"
OTHERS = {"cyrillic": "[Ѐ-ԯ]", "greek": "[Ͱ-Ͽἀ-῿µ]"}
_WORD, _SHORT = re.compile(r"[^\W\d_]{2,}"), 4


def repair(language: str) -> Repair:
    rows = read_table(Path(__file__).with_suffix(".tsv"))
    doubles = []
    for script, letters in OTHERS.items():
        own = [row for row in rows if row["script"] == script]
        back = {row["other"]: row["latin"] for row in own}
        known = [row for row in own if language in (row["languages"] or language).split()]
        doubles.append((re.compile(letters), {row["latin"]: row["other"] for row in known}, back))
    suspects = tuple(pair for each in OTHERS.values() for pair in ((LATIN, each), (each, LATIN)))
    mend = partial(_mended, letters_of(language), doubles)
    return Repair(suspects, partial(_WORD.sub, lambda word: mend(word[0])))


def _mended(own, doubles, word: str) -> str:
    latin = re.findall(LATIN, word)
    for letters, there, back in doubles if latin else ():
        other = letters.findall(word)
        if not other or (word.isupper() and len(word) < _SHORT):
            continue
        draw = len(latin) == len(other) and own is not None and own.match(other[0])
        if (len(latin) < len(other) or draw) and there.keys() >= {*latin}:
            return "".join(there.get(letter, letter) for letter in word)
        if len(other) < len(latin) and back.keys() >= {*other}:
            return "".join(back.get(letter, letter) for letter in word)
    return word
