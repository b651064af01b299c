"""Undo mojibake: UTF-8 that was read in another encoding, once or twice (`schÃ¶n` -> `schön`).

A word is decoded if all its foreign letters belong to sequences of UTF-8 and the result has letters
of its language. A single sequence may be chance, as at the end of »VOILÀ«; it counts if no spelling
explains it, as a capital after a small letter, or next to other words in the same encoding. Lines
that keep a sequence go to the package ftfy.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

from ems.corpora.identifier import letters_of
from ems.text.repairs.base import Repair

CODECS = ("latin-1", *(f"sloppy-windows-{page}" for page in (1252, 1250, 1251, 1253, 1254, 1256)))
_WORD = re.compile(r"[^ \t\n]+")
_C1 = re.compile("(?<![ÂÃÄÅ])[\x80\x82\x84\x85\x8b\x91-\x97\x99\x9b]")  # punctuation
_SIGNS = frozenset("‘’‚“”„†•…‹›–—€™№ ")
_CLOSING = frozenset("”“’‘‚„»«…›‹–—\xa0\xad")  # may follow a word


class Reading(NamedTuple):
    codecs: tuple[str, ...]  # in the order of decoding
    text: str
    sequences: int
    certain: bool


@cache
def _parts(codec: str) -> list[str]:
    """Return classes of the characters that start 2, 3, 4 bytes, and of the rest; "": of all."""
    import ftfy.bad_codecs  # noqa: F401  # registers encodings without gaps

    if not codec:
        columns = zip(*map(_parts, CODECS), strict=True)
        return [f"[{''.join(each[1:-1] for each in column)}]" for column in columns]
    high = bytes(range(0x80, 0x100)).decode(codec)
    parts = high[0x42:0x60], high[0x60:0x70], high[0x70:0x75], high[:0x40]
    return [f"[{re.escape(part)}]" for part in parts]


@cache
def _sequence(codec: str) -> re.Pattern[str]:
    two, three, four, rest = _parts(codec)
    return re.compile(f"{two}{rest}|{three}{rest}{{2}}|{four}{rest}{{3}}")


def repair(language: str) -> list[Repair]:
    *firsts, rest = _parts("")
    suspects = [*((first, rest) for first in firsts), ("[\x80-\x9f]", "")]
    return [Repair(suspects, partial(_mended, letters_of(language)))]


def _mended(own: Any, text: str, _: str) -> str:
    readings: dict[tuple[str, ...], dict[str, Reading]] = {}
    some = _sequence("").search
    words = [*filter(some, _WORD.findall(text))] if some(text) else []
    for word in {*words}:
        for reading in _readings(own, word, 2):
            readings.setdefault(reading.codecs, {})[word] = reading
    certain = [each for each in readings.values() if any(word.certain for word in each.values())]
    if certain:
        best = max(certain, key=lambda each: sum(word.sequences for word in each.values()))
        return _WORD.sub(lambda word: best[word[0]].text if word[0] in best else word[0], text)
    text = _C1.sub(lambda signs: signs[0].encode("latin-1").decode(CODECS[1]), text)
    for word in words:
        text = text.replace(word, _by_ftfy(own, word))
    return text


def _readings(own: Any, word: str, depth: int) -> Iterator[Reading]:
    """Yield what a word was before it was read in each encoding, up to `depth` times."""
    for codec in CODECS:
        found = [*_sequence(codec).finditer(word)]
        left = _sequence(codec).sub("", word) if found else ""
        if not found or any(letter > "\x7f" and letter.isalpha() for letter in left):
            continue
        try:
            new = _sequence(codec).sub(lambda each, by=codec: each[0].encode(by).decode(), word)
        except UnicodeDecodeError:
            continue
        # with letters of its own script only, even a word of two sequences may be right
        few = 3 if _in_script(own, word) else 1
        certain = len(found) > few or _is_certain(own, word, new, found[0])
        # a character that was read wrongly twice is two sequences or more
        inner = [*_readings(own, new, depth - 1)] if depth > 1 and len(found) > 1 else []
        for each in inner:
            codecs, certain = (codec, *each.codecs), certain or each.certain
            yield Reading(codecs, each.text, len(found), certain)
        if not inner and _plausible(own, new) and _keeps_script(own, word, new):
            yield Reading((codec,), new, len(found), certain)


def _plausible(own: Any, text: str) -> bool:
    def fits(sign: str) -> bool:
        if sign.isalpha():
            return own is None or sign < "\u0300" or bool(own.match(sign)) or sign in "ー々"
        return sign >= "\xa0" and unicodedata.category(sign) not in ("Co", "Cn", "Cs")

    return all(sign < "\x80" or fits(sign) for sign in text)


def _keeps_script(own: Any, word: str, new: str) -> bool:
    """Return whether a word in the letters of the language, if other than Latin, stays one."""
    if not _in_script(own, word):
        return True
    return _in_script(own, new) if any(map(str.isalpha, new)) else _SIGNS.issuperset(new)


def _in_script(own: Any, word: str) -> bool:
    """Return whether the language is not written in Latin letters and the word only in its own."""
    letters = filter(str.isalpha, word)
    return own is not None and not own.match("a") and all(map(own.match, letters))


def _is_certain(own: Any, word: str, new: str, found: re.Match[str]) -> bool:
    """Return whether no spelling explains this sequence, the only one of a word."""
    first, *rest = found[0]
    mixed = word[: found.start()][-1:].islower() and first.isupper()
    foreign = own is not None and first.isalpha() and not own.match(first)
    foreign = foreign and new[found.start()].isalpha()
    strange = len(rest) > 1 or not rest[0].isalpha()
    return mixed or foreign or (strange and not _CLOSING.issuperset(rest))


def _by_ftfy(own: Any, text: str) -> str:
    from ftfy import fix_encoding

    fixed = fix_encoding(text)
    new = "".join({*fixed} - {*text})
    fits = "\ufffd" not in new and _plausible(own, new) and _keeps_script(own, text, fixed)
    return fixed if fits else text
