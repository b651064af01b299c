"""Drop a bullet, a number or a speaker's name that only one side has (`- Come in!` next to
`Herein!` -> `Come in!`).
"""

import re
from functools import partial

from ems.text.repairs.base import Repair

_MARKS = r"\-–—•·*◦▪‣●■□►▶➢✓♪"
_UPPER = "A-ZÀ-ÖØ-Þ"
# languages that write "3." for "third"
ORDINAL = (
    "az bs cs da de eo et eu fi fo hr hu is ka kk ky lb lt lv mk nb nn no pl sk sl sq sr sv tr"
)
# what may stand for it on the other side
_OTHER = re.compile(rf"\s*[{_MARKS}#>(\[\"“”„«»‘'「『\d]")
_OTHER_NAME = re.compile("[^:：]{0,40}[:：]")


def repair(language: str) -> list[Repair]:
    ends = "[)]" if language in ORDINAL.split() else "[.)]"
    name = rf"[{_UPPER}][{_UPPER} .'-]{{2,19}}:\s+"
    mark = re.compile(rf"\s*(?:[{_MARKS}]\s+|\(?\d{{1,3}}{ends}\s+|{name})+(?=\S)")
    return [Repair((("\n", rf"[\s{_MARKS}(\d]"), (f"[{_UPPER}]", ":")), partial(_mended, mark))]


def _mended(mark: re.Pattern[str], text: str, other: str) -> str:
    found = mark.match(text)
    counterpart = _OTHER_NAME if found and ":" in found[0] else _OTHER
    if not found or not other.strip() or counterpart.match(other):
        return text
    numbers = re.findall(r"(?<=\()\d+|\d+(?=\.)", found[0])
    kept = any(f"{int(number)}" in other for number in numbers)
    return text if kept else text[found.end() :]
