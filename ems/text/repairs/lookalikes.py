"""Undo letters of another script that look alike, inside a word (`Mосква`, Latin M -> `Москва`).

lookalikes.tsv has the letters. A word changes to the script in which all its letters exist; if both
have them all, to the script of nearly all its letters, or of the line. Short codes such as CO2 and
abbreviations with an ending stay.
"""

import re
from functools import partial
from pathlib import Path

from ems.base.files import read_table
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
    return [Repair(suspects, partial(_mended, doubles))]


def _mended(doubles: Doubles, text: str, _: str) -> str:
    return _WORD.sub(lambda word: _of_one_script(doubles, word[0], text), text)


def _of_one_script(doubles: Doubles, word: str, text: str) -> str:
    latin = re.findall(LATIN, word)
    for letters, forth, back in doubles if latin else ():
        other = re.findall(letters, word)
        if not other or (word.isupper() and len(word) < _SHORT):
            continue
        ending = len(latin) > 1 and "".join(latin).isupper() and "".join(other).islower()
        there = {*latin} <= forth.keys() and not ending
        home = {*other} <= back.keys() and (there or len(other) <= len(latin))
        if home and there and len(latin) <= 3 * len(other):
            home = len(re.findall(LATIN, text)) > len(re.findall(letters, text))
        if home or there:
            return "".join((back if home else forth).get(letter, letter) for letter in word)
    return word
