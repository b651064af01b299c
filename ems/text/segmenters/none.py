"""No segmentation: SentencePiece alone cuts the text."""

from ems.text.segmenters.base import Segmenter

SEGMENTER = Segmenter(make=lambda language: lambda lines: lines, by_language=False, by_word=True)
