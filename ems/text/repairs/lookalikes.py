"""Undo letters of another script that look alike, inside a word (`Mосква`, Latin M -> `Москва`).

lookalikes.tsv has the letters. A word changes to the script in which all its letters exist; if both
have them all, to the script of most letters, in a draw to the language's script. Short codes such
as CO2 stay, and abbreviations with an ending.
"""

import re
from functools import partial
from pathlib import Path
from typing import Any

from ems.base.files import read_table
from ems.corpora.identifier import letters_of
from ems.text.repairs.base import Repair

LATIN = "[A-Za-zÀ-ÖØ-öø-ɏḀ-ỿ]"
OTHERS = {"cyrillic": "[Ѐ-ԯ]", "greek": "[Ͱ-Ͽἀ-῿µ]"}
_WORD, _SHORT = re.compile(r"[^\W\d_]{2,}"), 4
Doubles = list[tuple[str, dict[str, str], dict[str, str]]]  # letters, from Latin, to Latin


def repair(language: str) -> list[Repair]:
    doubles: Doubles = [(letters, {}, {}) for letters in OTHERS.values()]
    for row in read_table(Path(__file__).with_suffix(".tsv")):
        _, forth, back = doubles[list(OTHERS).index(row["script"])]
        if own := language in (row["languages"] or language).split():
            forth[row["latin"]] = row["other"]
        if own or row["script"] == "cyrillic":
            back[row["other"]] = row["latin"]
    suspects = [pair for each in OTHERS.values() for pair in ((LATIN, each), (each, LATIN))]
    mend = partial(_mended, letters_of(language), doubles)
    return [Repair(suspects, lambda text, _: _WORD.sub(lambda word: mend(word[0]), text))]


def _mended(own: Any, doubles: Doubles, word: str) -> str:
    latin = re.findall(LATIN, word)
    for letters, forth, back in doubles if latin else ():
        other = re.findall(letters, word)
        if not other or (word.isupper() and len(word) < _SHORT):
            continue
        ending = len(latin) > 1 and "".join(latin).isupper() and "".join(other).islower()
        draw = len(latin) == len(other) and own is not None and bool(own.match(other[0]))
        there = {*latin} <= forth.keys() and not ending
        home = {*other} <= back.keys() and len(other) <= len(latin) and not (there and draw)
        if home or there:
            return "".join((back if home else forth).get(letter, letter) for letter in word)
    return word
