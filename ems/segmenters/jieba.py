"""jieba, for Chinese."""

import warnings

from ems.segmenters.base import Segment, Segmenter, package


def _make(language: str) -> Segment:
    with warnings.catch_warnings():  # jieba 0.42 still imports pkg_resources
        warnings.simplefilter("ignore")
        import jieba

    jieba.setLogLevel("WARNING")
    return lambda lines: [" ".join(jieba.cut(line)) for line in lines]


SEGMENTER = Segmenter(
    _make,
    needs=(package("jieba"),),
    limit=3000,  # its time grows with the square of a run of unknown words
    default_of=("zh",),
)
