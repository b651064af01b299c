"""Tidy text, and the keys by which a training sentence is recognised as an evaluation sentence.

- `plain`: NFC, lower case, white space folded;
- `folded` (the default): NFKC, lower case, only letters, digits and combining marks kept. It sees
  through case, punctuation, spaces and full-width forms. Marks stay because Indic vowels and Thai
  tones are marks, and words differ by them.

EMS v2 section IV-B: "we removed the sentences that appear in any evaluation dataset"; the paper
does not say how they were compared. `tidy` and `plain_key` define the forms of one text;
`tidy_lines` and `folded_keys` are several times faster on many.
"""

import unicodedata
from collections.abc import Callable
from functools import cache

import numpy as np
import regex

from ems.errors import EmsError

# C0/C1 controls, line and paragraph separators, BOM: nothing a sentence needs, all of them line
# breakers
CONTROL = r"[\p{Cc}\u2028\u2029\ufeff]+"
_CONTROL = regex.compile(CONTROL)
_NOT_TEXT = regex.compile(r"[^\p{L}\p{N}\p{M}]+")
_JOINS = (  # a joiner after these changes how a word or an emoji is written
    r"\p{Arabic}\p{Syriac}\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Oriya}\p{Tamil}"
    r"\p{Telugu}\p{Kannada}\p{Malayalam}\p{Sinhala}\p{Khmer}\p{Myanmar}\p{Mongolian}"
    r"\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f"
)
_VISIBLE = (
    "\\u0600-\\u0605\\u06dd\\u070f\\u0890\\u0891\\u08e2\U000110bd\U000110cd"  # of category Cf
)
FORMAT = (  # Oniguruma, which a tokenizer.json is read with, takes it as it is
    rf"[\p{{Cf}}&&[^{_VISIBLE}\u200c\u200d\u180e\ufeff]]|(?<![{_JOINS}])[\u200c\u200d\u180e]"
)
_FORMAT = regex.compile(FORMAT, regex.V1)
_NOT_LETTER_OR_DIGIT = bytes(c for c in range(128) if not chr(c).isalnum() and chr(c) != "\n")
_LOWER = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")

Tidy = Callable[[str], str]


def tidy(text: str) -> str:
    """Return the NFC without control characters and line separators, with single spaces."""
    return " ".join(_CONTROL.sub(" ", unicodedata.normalize("NFC", text)).split())


def without_format(text: str) -> str:
    """Return the text without bidi controls, soft hyphens, zero-width spaces and their like.

    Joiners between letters that are written with them (Persian, Hindi, Sinhala, ...) and in emoji
    stay, and so do the signs that enclose a number in Arabic.
    """
    return _FORMAT.sub("", text)


def tidier(format_characters: str) -> Tidy:
    """Return `tidy` with the setting `clean.format_characters`: "keep" or "drop"."""
    return (lambda text: tidy(without_format(text))) if format_characters == "drop" else tidy


def tidy_lines(texts: list[str], slow: Tidy = tidy) -> list[str]:
    """Return `slow` (`tidy`, or a `tidier`) of each text, called only where it changes something.

    Printable text has no control, separator, format character or white space other than spaces.
    """
    normalised = unicodedata.is_normalized
    return [
        text
        if text.isprintable()
        and "  " not in text
        and text[:1] != " "
        and text[-1:] != " "
        and (text.isascii() or normalised("NFC", text))
        else slow(text)
        for text in texts
    ]


def plain_key(text: str) -> str:
    """Return the NFC in lower case, runs of white space as one space."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def folded_keys(texts: list[str]) -> list[str]:
    """Return the folded key of each text, '' for one without letters and digits."""
    plain = [text for text in texts if text.isascii()]
    if len(plain) == len(texts):
        return _folded_ascii(texts)
    others = iter(_folded_unicode([text for text in texts if not text.isascii()]))
    if not plain:
        return list(others)
    folded = iter(_folded_ascii(plain))
    return [next(folded if text.isascii() else others) for text in texts]


def _folded_ascii(texts: list[str]) -> list[str]:
    block = "\n".join(texts).encode().translate(_LOWER, _NOT_LETTER_OR_DIGIT)
    return block.decode().split("\n") if texts else []


def _folded_unicode(texts: list[str]) -> list[str]:
    # a line feed neither composes nor has a case: the block folds as its lines do
    block = "\n".join([unicodedata.normalize("NFKC", text) for text in texts]).lower()
    codes = np.frombuffer(block.encode("utf-32-le", "surrogatepass"), np.uint32)
    kept = codes[_is_text()[codes]]
    return kept.tobytes().decode("utf-32-le", "surrogatepass").split("\n")


@cache
def _is_text() -> np.ndarray:
    """Return which code points stay in a folded key or divide keys (LF), bool[0x110000]."""
    every = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    kept = _NOT_TEXT.sub("", every).encode("utf-32-le", "surrogatepass")
    table = np.zeros(0x110000, bool)
    table[np.frombuffer(kept, np.uint32)] = True
    table[ord("\n")] = True
    return table


def keys_function(name: str) -> Callable[[list[str]], list[str]]:
    """Return the function from tidy texts to the keys of that name."""
    functions = {"plain": lambda texts: list(map(plain_key, texts)), "folded": folded_keys}
    if name not in functions:
        raise EmsError(f"decontaminate.key: found {name!r}; allowed values: {', '.join(functions)}")
    return functions[name]
