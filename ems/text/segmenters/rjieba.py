"""jieba's algorithm in Rust: about 20 times faster, different for some Latin letters and digits."""

from ems.text.segmenters.base import Segment, Segmenter, half_width_ascii, package


def _make(language: str) -> Segment:
    import rjieba

    return lambda lines: [" ".join(rjieba.cut(line)) for line in lines]


SEGMENTER = Segmenter(_make, needs=(package("rjieba"),), prepare=half_width_ascii)
