"""jieba's algorithm in Rust, some twenty times faster.

It differs from jieba in a few lines with Latin letters or digits.
"""

from ems.text.segmenters.base import Segment, Segmenter, package


def _make(language: str) -> Segment:
    import rjieba

    return lambda lines: [" ".join(rjieba.cut(line)) for line in lines]


SEGMENTER = Segmenter(_make, needs=(package("rjieba"),))
