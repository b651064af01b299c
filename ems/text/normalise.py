"""Tidy text, and the keys by which a training sentence is recognised as an evaluation sentence.

- `plain`: NFC, lower case, white space folded;
- `folded` (the default): NFKC, lower case, only letters, digits and combining marks kept. It sees
  through case, punctuation, spaces and full-width forms. Marks stay because Indic vowels and Thai
  tones are marks, and words differ by them.

EMS v2 section IV-B: "we removed the sentences that appear in any evaluation dataset"; the paper
does not say how they were compared.
"""

import unicodedata
from collections.abc import Callable

import regex

from ems.errors import EmsError

# C0/C1 controls, line and paragraph separators, BOM: nothing a sentence needs, all of them line
# breakers
_CONTROL = regex.compile(r"[\p{Cc}\u2028\u2029\ufeff]+")
_NOT_TEXT = regex.compile(r"[^\p{L}\p{N}\p{M}]+")


def tidy(text: str) -> str:
    """NFC without control characters and line separators, white space folded to single spaces."""
    return " ".join(_CONTROL.sub(" ", unicodedata.normalize("NFC", text)).split())


def plain_key(text: str) -> str:
    """NFC, lower case, runs of white space as one space."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def folded_key(text: str) -> str:
    """NFKC, lower case, letters, digits and marks only. '' for a sentence without any of them."""
    return _NOT_TEXT.sub("", unicodedata.normalize("NFKC", text).lower())


KEYS: dict[str, Callable[[str], str]] = {"plain": plain_key, "folded": folded_key}


def key_function(name: str) -> Callable[[str], str]:
    """The key function of that name. Raises `EmsError` with the allowed names."""
    if name not in KEYS:
        raise EmsError(f"decontaminate.key: found {name!r}; allowed values: {', '.join(KEYS)}")
    return KEYS[name]
