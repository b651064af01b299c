"""The text on which an export is checked where no other is given: of many scripts, and offline."""

import random
from pathlib import Path
from typing import Any

from ems.base.errors import Damaged, EmsError
from ems.base.files import read_lines
from ems.corpora.demo.free import read_free
from ems.text.segmenters.base import SPACE

MADE = 300  # lines of pieces
WORDS = 12  # pieces of the longest but ten
ODD = [
    "e\u0301te\u0301, 3 °C … ½ № ﬁ Å",
    "  two  spaces\tand\u00a0others\u3000here ",
    "ΟΔΥΣΣΕΥΣ ΚΑΙ ΣΟΦΟΣ",
    "İstanbul, STRASSE, ǅ",
    "<mask> <2en> [CLS]",
    "a_b-c/d@e.f #g $1,000.00 — «h» „i“ 100%",
    "🙂👍🏽 ♥ ™",
    "ＡＢＣ １２３ ｶﾀｶﾅ",
]


def sample(vocabulary: Any, seed: int = 0) -> list[str]:
    """Return lines of eight languages, odd ones, and lines of pieces of the vocabulary, which are
    of all of its scripts.
    """
    lines = [text for sentence in read_free() for text in sentence.values()]
    draw = random.Random(seed)
    normal = [at for at in range(len(vocabulary)) if _is_text(vocabulary, at)]
    for _ in range(MADE):
        pieces = draw.choices(normal, k=draw.randint(1, WORDS))
        text = "".join(map(vocabulary.id_to_piece, pieces)).replace(SPACE, " ").strip()
        lines.append(text.capitalize())
    long = [" ".join(lines[at : at + 40]) for at in range(0, 200, 40)]
    return [*lines, *ODD, *long]


def _is_text(vocabulary: Any, at: int) -> bool:
    return not (vocabulary.is_control(at) or vocabulary.is_unknown(at) or vocabulary.is_byte(at))


def read_sample(path: Path) -> list[str]:
    """Return the lines of the user's file. Raises `EmsError` for one that is not UTF-8 text."""
    try:
        return read_lines(path)
    except Damaged as error:
        raise EmsError(f"{error.finding}; give UTF-8 text, a sentence a line") from None
