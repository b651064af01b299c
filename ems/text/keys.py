"""The keys by which evaluation sentences are found in training text, named by `decontaminate.key`.

`plain` is NFC, lower case, with single spaces. `folded` is NFKC, lower case, with only letters,
digits and combining marks, which distinguish Indic and Thai words. `primary` (the default) also
ignores accents, variants of letters and digits, and entities (`ems/text/primary.py`). EMS v2
section IV-B: "we removed the sentences that appear in any evaluation dataset"; the paper does not
say how sentences were compared.
"""

import unicodedata
from collections.abc import Callable
from functools import cache

import numpy as np

from ems.text.primary import primary_keys

_NOT_LETTER_OR_DIGIT = bytes(c for c in range(128) if not chr(c).isalnum() and chr(c) != "\n")
_LOWER = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")

Keys = dict[str, tuple[str, ...]]  # key -> evaluation sets that contain it


def plain_key(text: str) -> str:
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
    "primary": primary_keys,
}
