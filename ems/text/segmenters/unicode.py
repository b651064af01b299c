"""Separate punctuation and symbols by Unicode category: the same for all languages, without a tool.

A tokenizer.json can express it (`ems.export.tokenizer`). The line is first normalised like in
SentencePiece, which turns the acute accent (U+00B4) into a space and a combining mark: separating
the accent before that would change the result.
"""

import re
from functools import cache
from unicodedata import category

from ems.text.segmenters.base import RULE, SPACE, Segment, Segmenter

_CANDIDATE = re.compile(r"[^\w\s]|_")  # may match combining marks, which `_apart` leaves alone


def _make(language: str) -> Segment:
    import sentencepiece

    normalise = sentencepiece.SentencePieceNormalizer(rule_name=RULE).normalize

    def segment(line: str) -> str:
        text = normalise(line).replace(SPACE, " ")
        return _CANDIDATE.sub(lambda found: _apart(found[0]), text) or line

    return lambda lines: [segment(line) for line in lines]


@cache
def _apart(character: str) -> str:
    """Put spaces around punctuation (P) and symbols (S), but not around other characters."""
    return f" {character} " if category(character)[0] in "PS" else character


SEGMENTER = Segmenter(make=_make, by_language=False, by_word=True)
