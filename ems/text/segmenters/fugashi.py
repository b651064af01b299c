"""fugashi (MeCab in Python) with the dictionary UniDic, for Japanese."""

from ems.text.segmenters.base import Segment, Segmenter, cut_runs, package


def _make(language: str) -> Segment:
    from fugashi import Tagger

    tagger = Tagger("-Owakati")
    return lambda lines: [tagger.parse(line) for line in lines]


SEGMENTER = Segmenter(
    _make,
    needs=(package("fugashi"), package("unidic_lite", "unidic-lite")),
    prepare=cut_runs,
    limit=100_000,  # crashes with a segmentation fault at a few times this length
)
