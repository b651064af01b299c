"""The planted leak: benchmark pairs in the training corpus, for decontamination to find.

Three kinds, equally many: verbatim; in disguise on both sides, so that only a comparison of keys
finds them; and one side only, the other side being a different sentence with one word exchanged.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ems.base.errors import EmsError
from ems.corpora.demo.draw import Drawer, Sentence, key, shuffled

LEAK_VERBATIM = LEAK_DISGUISED = LEAK_ONE_SIDE = 40
LEAKED_PAIRS = LEAK_VERBATIM + LEAK_DISGUISED + LEAK_ONE_SIDE


@dataclass(frozen=True)
class Leak:
    """One leaked training pair: English, the other language, and how it leaks."""

    english: str
    other: str
    kind: str  # verbatim | disguised | english | other (the side that is the benchmark's)


def plan_leak(benchmark: Sequence[Sentence], language: str, drawer: Drawer) -> list[Leak]:
    """Choose `LEAKED_PAIRS` benchmark pairs of one language and leak each in its way."""
    chosen = shuffled(benchmark, drawer.random)
    one_side = [s for s in chosen if s.template is not None][:LEAK_ONE_SIDE]
    taken = {id(sentence) for sentence in one_side}
    whole = [s.pair(language) for s in chosen if id(s) not in taken]
    leaks = [Leak(*pair, "verbatim") for pair in whole[:LEAK_VERBATIM]]
    for number, (english, other) in enumerate(whole[LEAK_VERBATIM:][:LEAK_DISGUISED]):
        both = disguise(english, number), disguise(other, number + 1)
        leaks.append(Leak(*both, "disguised"))
    for number, sentence in enumerate(one_side):
        own, near = sentence.pair(language), drawer.neighbour(sentence).pair(language)
        english = Leak(own[0], near[1], "english")
        leaks.append(Leak(near[0], own[1], "other") if number % 2 else english)
    return leaks


def shouted(text: str) -> str:
    """`Where is it?` -> `WHERE IS IT?!!`; only the marks where the script has no case."""
    return text.upper() + "!!"


def widened(text: str) -> str:
    """ASCII as full-width forms, full-width marks as ASCII, some Arabic as ligatures."""
    wide = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
    narrow = {ord(mark): plain for mark, plain in zip("。，？！、", ".,?!,", strict=True)}
    return text.translate(wide | narrow).replace("لا", "ﻻ").replace(".", "…")


def spaced(text: str) -> str:
    """Doubled and no-break spaces; in scripts without spaces, one before the last letter."""
    inner = text.replace(" ", " \u00a0") if " " in text else f"{text[:-2]}\u3000{text[-2:]}"
    return f"{inner.rstrip('.。')} ."


def decomposed(text: str) -> str:
    """Letters and marks apart (NFD), in lower case, between quotation marks."""
    return "« " + unicodedata.normalize("NFD", text.lower()) + " »"


def dashed(text: str) -> str:
    """As a line of dialogue, in lower case, without the final mark."""
    return "– " + text.lower().rstrip(".。!！?？؟ ") + " –"


DISGUISES: tuple[Callable[[str], str], ...] = (shouted, widened, spaced, decomposed, dashed)


def disguise(text: str, number: int) -> str:
    """Return `text` in a disguise that keeps its key, beginning with disguise `number`.

    One that would change the key is passed over: "ß" in upper case is "SS".
    """
    for turn in range(len(DISGUISES)):
        changed = DISGUISES[(number + turn) % len(DISGUISES)](text)
        if changed != text and key(changed) == key(text):
            return changed
    raise EmsError(f"no disguise keeps the key of {text!r}")
