"""Right or wrong, sentence by sentence: the percentage, its interval, and the bits themselves.

A bootstrap of a percentage draws N of N sentences with replacement, so the number of hits is
Binomial(N, share of hits): its quantiles are the interval. Score files keep every bit (base85, 0.16
of a character a sentence), so that two systems can be compared sentence by sentence.
"""

import base64

import numpy as np

LEVEL = 0.95


def interval(right: int, count: int) -> tuple[float, float]:
    """Return (low, high): the percentile bootstrap interval of 100 * right / count."""
    if right in (0, count):
        return 100 * right / count, 100 * right / count
    hits, share = np.arange(count + 1), right / count
    factorials = np.cumsum(np.log(np.maximum(hits, 1)))  # their logarithms
    chances = hits * np.log(share) + hits[::-1] * np.log1p(-share) - factorials - factorials[::-1]
    up_to = np.cumsum(np.exp(chances - chances.max()))
    tail = (1 - LEVEL) / 2
    low, high = np.searchsorted(up_to, [tail * up_to[-1], (1 - tail) * up_to[-1]])
    return 100 * float(low) / count, 100 * float(high) / count


def packed(hits: np.ndarray) -> str:
    """Return bool[N] as text."""
    return base64.b85encode(np.packbits(hits)).decode()


def unpacked(text: str, count: int) -> np.ndarray:
    """Return the bool[count] that `packed` made text of. Raises `ValueError` for other text."""
    raw = np.frombuffer(base64.b85decode(text), np.uint8)
    if len(raw) != -(-count // 8):
        raise ValueError(f"expected {-(-count // 8)} bytes for {count} sentences, found {len(raw)}")
    return np.unpackbits(raw, count=count).astype(bool)
