"""Punctuation and symbols apart, by Unicode alone: the same for each language, with no tool.

A tokenizer.json can say it too (`ems.export.tokenizer`). The line is normalised first, as
SentencePiece is going to: the acute accent (U+00B4) becomes a space and a combining mark, which are
not to be parted.
"""

import re
from functools import cache
from unicodedata import category

from ems.text.segmenters.base import RULE, SPACE, Segment, Segmenter

_CANDIDATE = re.compile(r"[^\w\s]|_")  # combining marks are no mark of punctuation


def _make(language: str) -> Segment:
    import sentencepiece

    normalise = sentencepiece.SentencePieceNormalizer(rule_name=RULE).normalize

    def segment(line: str) -> str:
        text = normalise(line).replace(SPACE, " ")
        return _CANDIDATE.sub(lambda found: _apart(found[0]), text) or line

    return lambda lines: [segment(line) for line in lines]


@cache
def _apart(character: str) -> str:
    """Return punctuation (P) and symbols (S) between spaces, any other character as it is."""
    return f" {character} " if category(character)[0] in "PS" else character


SEGMENTER = Segmenter(make=_make, by_language=False)
