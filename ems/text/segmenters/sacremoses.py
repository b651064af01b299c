"""The Moses tokenizer in Python: no Perl, slower, different output for Indic scripts."""

from ems.text.segmenters.base import Segment, Segmenter, package


def _make(language: str) -> Segment:
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(language)
    return lambda lines: [" ".join(tokenizer.tokenize(line, escape=False)) for line in lines]


SEGMENTER = Segmenter(_make, needs=(package("sacremoses"),), cuts_marks=True)
