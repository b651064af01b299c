"""Undo tokenisation (`state @-@ of @-@ the art , don 't` -> `state-of-the art, don't`).

detokenise.tsv has the rules of languages with spaces. Spaces between Chinese characters or kana go
if they separate words throughout, four characters or fewer each: names in a list are also apart.
"""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from ems.text.repairs.base import Repair, rules

_SIGN = "[々〇\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff、。，！？：；「」『』（）《》“”]"
_GAP = re.compile(f"(?<={_SIGN}) +(?={_SIGN})")
LEAST, LONGEST = 4, 3  # gaps, mean number of characters between them


def repair(language: str) -> Repair | None:
    own = rules(Path(__file__).with_suffix(".tsv"), language)
    if language not in ("zh", "ja", "yue", "wuu"):
        return own
    return replace(own, suspects=(*own.suspects, (_SIGN, " ")), text=partial(_joined, own.text))


def _joined(mend, text: str) -> str:
    text = mend(text)
    gaps = len(_GAP.findall(text))
    segmented = gaps >= LEAST and len(text) - gaps <= LONGEST * (gaps + 1)
    return _GAP.sub("", text) if segmented else text
