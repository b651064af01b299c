"""Tidy text, and compute the keys by which evaluation sentences are found in training text.

The key `plain` is NFC, lower case, with single spaces. `folded` (the default) is NFKC, lower case,
with only letters, digits and combining marks, which distinguish Indic and Thai words. EMS v2
section IV-B: "we removed the sentences that appear in any evaluation dataset"; the paper does not
say how sentences were compared.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib.resources import files

import numpy as np

# C0/C1 controls, line and paragraph separators, BOM: no sentence needs them, and they break lines
CONTROL = r"[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]+"  # valid in Python and Oniguruma
_CONTROL = re.compile(CONTROL)
# category Cf (Unicode 17) without visible signs and joiners
_FORMAT = (
    "\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufff9-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
    "\U000e0020-\U000e007f"
)
_NOT_LETTER_OR_DIGIT = bytes(c for c in range(128) if not chr(c).isalnum() and chr(c) != "\n")
_LOWER = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")

Tidy = Callable[[str], str]
Keys = dict[str, tuple[str, ...]]  # key -> evaluation sets that contain it


def tidy(text: str) -> str:
    """Normalise to NFC with single spaces, without control characters and line separators."""
    return " ".join(_CONTROL.sub(" ", unicodedata.normalize("NFC", text)).split())


def without_format(text: str) -> str:
    """Remove bidi controls, soft hyphens, zero-width spaces and similar format characters. Keep
    joiners in emoji and between letters that need them (Persian, Hindi, Sinhala, ...), and the
    Arabic signs that enclose a number.
    """
    return re.sub(format_pattern(), "", text)


@cache
def format_pattern() -> str:
    """Return the pattern that `without_format` removes, valid in Python and Oniguruma. The package
    regex knows these properties by name, but using a model must not require it.
    """
    lines = files("ems.text").joinpath("normalise.txt").read_text("utf-8").split("\n")
    ranges = " ".join(line for line in lines if not line.startswith("#")).split()
    joins = "".join("-".join(chr(int(end, 16)) for end in each.split("-")) for each in ranges)
    return f"[{_FORMAT}]|(?<![{joins}])[\u200c\u200d\u180e]"


def tidier(format_characters: str) -> Tidy:
    """Return the `tidy` for a value of `clean.format_characters`, "keep" or "drop"."""
    return (lambda text: tidy(without_format(text))) if format_characters == "drop" else tidy


def tidy_lines(texts: list[str], slow: Tidy = tidy) -> list[str]:
    """Apply `slow` (`tidy`, or a `tidier`) to each text, skipping texts that it would not change:
    printable text has no control, separator, format character or white space other than spaces.
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
    """Normalise to NFC in lower case, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def folded_keys(texts: list[str]) -> list[str]:
    """Return the folded key of each text; "" for text without letters and digits."""
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
    # a line feed neither composes nor has a case, so all lines can be folded in one block
    block = "\n".join([unicodedata.normalize("NFKC", text) for text in texts]).lower()
    codes = np.frombuffer(block.encode("utf-32-le", "surrogatepass"), np.uint32)
    kept = codes[_is_text()[codes]]
    return kept.tobytes().decode("utf-32-le", "surrogatepass").split("\n")


@cache
def _is_text() -> np.ndarray:
    """Return which code points a folded key keeps, and the LF between keys, bool[0x110000]."""
    import regex  # not at the top: using a model must not require it

    every = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    kept = regex.sub(r"[^\p{L}\p{N}\p{M}]+", "", every).encode("utf-32-le", "surrogatepass")
    table = np.zeros(0x110000, bool)
    table[np.frombuffer(kept, np.uint32)] = True
    table[ord("\n")] = True
    return table


KEYS: dict[str, Callable[[list[str]], list[str]]] = {  # name -> function from tidy texts to keys
    "plain": lambda texts: list(map(plain_key, texts)),
    "folded": folded_keys,
}
