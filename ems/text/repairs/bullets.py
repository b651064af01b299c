"""Drop a bullet, a number or a speaker's name that only one side has (`- Come in!`, `Herein!` ->
`Come in!`).
"""

import re
from functools import partial

from ems.text.repairs.base import Repair

_MARKS = r"\-–—•·*◦▪‣●■□►▶➢✓♪"
_NAME = r"[A-ZÀ-ÖØ-Þ][A-ZÀ-ÖØ-Þ .'-]{1,19}:\s+"
ORDINAL = "cs da de eo et eu fi fo hr hu is lv mk nb nn no pl sk sl sr sv tr bs lt ka kk ky az sq lb hsb".split()
_OTHER = re.compile(rf"\s*(?:[{_MARKS}#>(\[]|\d|[^:：]{{0,40}}[:：])")  # what stands for it


def repair(language: str) -> Repair:
    ends = "[)]" if language in ORDINAL else "[.)]"
    mark = re.compile(rf"\s*(?:[{_MARKS}]\s+|\(?\d{{1,3}}{ends}\s+|{_NAME})+(?=\S)")
    suspects = (("\n", rf"[\s{_MARKS}(\d]"), ("[A-ZÀ-ÖØ-Þ]", ":"))
    return Repair(suspects, pair=partial(_mended, mark))


def _mended(mark: re.Pattern[str], text: str, other: str) -> str:
    found = mark.match(text)
    if not found or not other.strip() or _OTHER.match(other):
        return text
    numbers = re.findall(r"\d+", found[0])
    return text if any(number in other for number in numbers) else text[found.end() :]
