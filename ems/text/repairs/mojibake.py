"""Undo mojibake: UTF-8 that was read in another encoding, once or more (`schÃ¶n` -> `schön`).

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
from ems.text.repairs.base import Repair, Suspects

CODECS = ("latin-1", *(f"sloppy-windows-{page}" for page in (1252, 1250, 1251, 1253, 1254, 1256)))
_WORD = re.compile(r"[^ \t\n]*[^ \t\n\x00-\x7f][^ \t\n]*")
_C1 = re.compile("[\x80-\x9f]+")
_CLOSING = frozenset("”“’‘‚„»«…›‹–—\xa0\xad")  # may follow a word
CODEC_OF_C1 = "sloppy-windows-1252"


class Reading(NamedTuple):
    codecs: tuple[str, ...]  # in the order of decoding
    text: str
    sequences: int
    certain: bool


@cache
def _parts(codec: str) -> list[str]:
    """Return classes of the characters that start a sequence of 2, 3, 4 bytes, and of the rest."""
    import ftfy.bad_codecs  # registers encodings without gaps  # noqa: F401

    high = bytes(range(0x80, 0x100)).decode(codec)
    parts = high[0x42:0x60], high[0x60:0x70], high[0x70:0x75], high[:0x40]
    return [f"[{re.escape(part)}]" for part in parts]


@cache
def _sequence(codec: str) -> re.Pattern[str]:
    two, three, four, rest = _parts(codec)
    return re.compile(f"{two}{rest}|{three}{rest}{{2}}|{four}{rest}{{3}}")


def repair(language: str) -> Repair:
    own = letters_of(language)
    return Repair(_suspects(), partial(_mended, own))


def _suspects() -> Suspects:
    two, three, four, rest = ("|".join(each) for each in zip(*map(_parts, CODECS), strict=True))
    return (two, rest), (three, rest), (four, rest), ("[\x80-\x9f]", "")


def _mended(own: Any, text: str) -> str:
    readings: dict[tuple[str, ...], dict[str, Reading]] = {}
    for word in {*_WORD.findall(text)}:
        for reading in _readings(own, word, 2):
            readings.setdefault(reading.codecs, {})[word] = reading
    certain = [own for own in readings.values() if any(each.certain for each in own.values())]
    if certain:
        best = max(certain, key=lambda own: sum(each.sequences for each in own.values()))
        return _WORD.sub(lambda word: best[word[0]].text if word[0] in best else word[0], text)
    text = _C1.sub(lambda signs: signs[0].encode("latin-1").decode(CODEC_OF_C1), text)
    return _by_ftfy(own, text) if any(_sequence(each).search(text) for each in CODECS) else text


def _readings(own: Any, word: str, depth: int) -> Iterator[Reading]:
    """Yield what a word may have been before it was read in each encoding, at most `depth` times."""
    for codec in CODECS:
        sequences = [*_sequence(codec).finditer(word)]
        left = _sequence(codec).sub("", word) if sequences else ""
        if not sequences or any(letter > "\x7f" and letter.isalpha() for letter in left):
            continue
        try:
            decode = lambda found, codec=codec: found[0].encode(codec).decode()
            new = _sequence(codec).sub(decode, word)
        except UnicodeDecodeError:
            continue
        if _plausible(own, new):
            certain = len(sequences) > 1 or _is_certain(own, word, sequences[0])
            yield Reading((codec,), new, len(sequences), certain)
        elif depth > 1:
            for reading in _readings(own, new, depth - 1):
                codecs = (codec, *reading.codecs)
                yield Reading(codecs, reading.text, len(sequences), reading.certain or len(sequences) > 1)


def _plausible(own: Any, text: str) -> bool:
    def fits(sign: str) -> bool:
        if sign.isalpha():
            return own is None or sign < "\u0300" or bool(own.match(sign)) or sign in "ー々"
        return sign >= "\xa0" and unicodedata.category(sign) not in ("Co", "Cn", "Cs")

    return all(sign < "\x80" or fits(sign) for sign in text)


def _is_certain(own: Any, word: str, found: re.Match[str]) -> bool:
    first, *rest = found[0]
    if _CLOSING.issuperset(rest):
        return word[: found.start()][-1:].islower() and first.isupper()
    foreign = own is not None and first.isalpha() and not own.match(first)
    mixed = word[: found.start()][-1:].islower() and first.isupper()
    return foreign or mixed or len(rest) > 1 or not rest[0].isalpha()


def _by_ftfy(own: Any, text: str) -> str:
    from ftfy import fix_encoding

    fixed = fix_encoding(text)
    new = "".join({*fixed} - {*text})
    return fixed if "\ufffd" not in new and _plausible(own, new) else text
