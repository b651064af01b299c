"""The keys by which evaluation sentences are found in training text, named by `decontaminate.key`.

`plain` is NFC, lower case, with single spaces. `folded` is NFKC, lower case, only letters, digits
and combining marks, which distinguish Indic and Thai words. `primary` (the default) also ignores
accents, variants of letters and digits, and entities (`ems/text/primary.py`). EMS v2 IV-B does not
say how sentences were compared: "removed the sentences that appear in any evaluation dataset".
"""

import unicodedata
from collections.abc import Callable
from functools import cache
from hashlib import blake2b

import numpy as np

from ems.text.primary import primary_keys

HASH = np.dtype("<u8")
Keys = dict[str, tuple[str, ...]]  # key -> evaluation sets that contain it


def hashes_of(texts: list[str]) -> np.ndarray:
    """Return a non-zero hash of each text, uint64[n]."""
    digests = b"".join([blake2b(text.encode(), digest_size=8).digest() for text in texts])
    return np.maximum(np.frombuffer(digests, HASH), 1)


def plain_key(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def folded_keys(texts: list[str]) -> list[str]:
    """Return the folded key of each text; "" for text without letters and digits."""
    # a line feed neither composes nor has a case, so all lines can be folded in one block
    block = "\n".join([unicodedata.normalize("NFKC", text) for text in texts]).lower()
    codes = np.frombuffer(block.encode("utf-32-le", "surrogatepass"), np.uint32)
    kept = codes[_is_text()[codes]]
    return kept.tobytes().decode("utf-32-le", "surrogatepass").split("\n") if texts else []


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
