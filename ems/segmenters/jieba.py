"""jieba, for Chinese."""

import marshal
import warnings
from types import SimpleNamespace

from ems.segmenters.base import Segment, Segmenter, package


def _make(language: str) -> Segment:
    with warnings.catch_warnings():  # jieba 0.42 still imports pkg_resources
        warnings.simplefilter("ignore")
        import jieba

    jieba.setLogLevel("WARNING")
    # marshal.load, with which it reads its dictionary, asks the file for a few bytes at a time
    jieba.marshal = SimpleNamespace(load=lambda f: marshal.loads(f.read()), dump=marshal.dump)
    return lambda lines: [" ".join(jieba.cut(line)) for line in lines]


SEGMENTER = Segmenter(
    _make,
    needs=(package("jieba"),),
    limit=3000,  # its time grows with the square of a run of unknown words
    default_of=("zh",),
)
