"""Damages of a line: typos, case, marks, punctuation, spaces, Latin letters, English names.

A typo is a letter of a neighbouring key. keyboards.tsv has the letters of the usual layouts: the
rows of keys from the number row down, then shifted, with a dot for any other key. The source is
xkeyboard-config 2.35: the default of the language's country, or `us` where most people write with
it. Chinese, Japanese, Korean and languages that the table lacks have no layout, and letters that
people compose have no key: such a letter is dropped, doubled or swapped with the next one.
"""

import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path
from random import Random

import regex
from anyascii import anyascii

from ems.base.files import read_table

NEAR = ((0, -1), (0, 1), (-1, 0), (-1, 1), (1, -1), (1, 0))  # (row, key): each row is further right
LOWER = {"tr": str.maketrans("Iİ", "ıi")}
UPPER = {"tr": str.maketrans("i", "İ")}
STROKES = str.maketrans("łđøħŧıŁĐØĦŦ", "ldohtiLDOHT")  # marks that Unicode does not separate
NAME = regex.compile(r"(?<=\S )\p{Lu}\w{2,}")  # a word with a capital that is not the first
ALIKE = str.maketrans("cqz", "kks")


@cache
def neighbours(language: str) -> dict[str, str]:
    """Return letter -> letters of the keys around it; empty for a language without a layout."""
    rows = read_table(Path(__file__).with_name("keyboards.tsv"))
    own = " ".join(row["keys"] for row in rows if language in row["languages"].split())
    keys = {(y, x): key for y, line in enumerate(own.split()) for x, key in enumerate(line)}
    around = {at: [keys.get((at[0] + y, at[1] + x), ".") for y, x in NEAR] for at in keys}
    return {key: "".join(around[at]).replace(".", "") for at, key in keys.items()}


def typos(share: float, line: str, language: str, english: str) -> str:
    """Mistype a share of the letters, drawn by share, language and line, never by their order."""
    draw, near, damaged = Random(f"{share} {language} {line}"), neighbours(language), list(line)
    letters = [at for at, letter in enumerate(line) if unicodedata.category(letter)[0] in "LM"]
    for at in draw.sample(letters, round(share * len(letters))):
        letter, after = damaged[at], "".join(damaged[at + 1 : at + 2])
        slips = [("", after), (letter * 2, after), (after, letter)][: 2 + after.isalpha()]
        shift = str.upper if letter.isupper() else str
        keys = [(shift(key), after) for key in near.get(letter.lower(), "")]
        damaged[at : at + 2] = draw.choice(keys or slips)
    return "".join(damaged)


def without_diacritics(line: str, language: str, english: str) -> str:
    """Remove the marks of Latin and Greek letters, which people leave out. Other scripts keep
    theirs: they are vowels (Devanagari, Thai), rare (Arabic), or part of a letter (Cyrillic).
    """
    apart = unicodedata.normalize("NFD", line.translate(STROKES))
    plain = regex.sub(r"([\p{Latin}\p{Greek}])\p{Mn}+", r"\1", apart)
    return unicodedata.normalize("NFC", plain)


def english_names(line: str, language: str, english: str) -> str:
    """Replace words that sound like a name of the English line by it, as in code-mixed text."""
    names = {sound(name): name for name in NAME.findall(english)}
    return regex.sub(r"\w+", lambda word: names.get(sound(word[0]), word[0]), line)


@lru_cache(1 << 16)
def sound(word: str) -> str:
    """Return the consonants of a word in Latin letters; all letters if it has fewer than three."""
    latin = anyascii(word).lower()
    consonants = regex.sub(r"[aeiouvwy\W]|(.)(?=\1)", "", latin.translate(ALIKE))
    return consonants if len(consonants) > 2 else latin


CLEAN = "clean"
DAMAGES: dict[str, Callable[[str, str, str], str]] = {  # of a line, its language, and English
    "5 % typos": partial(typos, 0.05),
    "10 % typos": partial(typos, 0.1),
    "lower case": lambda line, language, english: line.translate(LOWER.get(language, {})).lower(),
    "upper case": lambda line, language, english: line.translate(UPPER.get(language, {})).upper(),
    "no diacritics": without_diacritics,
    "no punctuation": lambda line, language, english: regex.sub(r"\p{P}+", "", line),
    "no spaces": lambda line, language, english: line.replace(" ", ""),
    "Latin letters": lambda line, language, english: anyascii(line),
    "English names": english_names,
}
