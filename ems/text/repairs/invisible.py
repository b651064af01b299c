"""Drop control and format characters without meaning (`so\\xadft` -> `soft`).

Joiners stay where `ems.text.normalise` says that they join, zero-width spaces in scripts that
separate words with them, and marks of direction in languages written from right to left.
"""

import re

from ems.text.normalise import format_pattern
from ems.text.repairs.base import Repair

_CONTROL = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff"  # the others are white space
_FORMAT = "\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufff9-\ufffb"
_VIRAMA = "(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])"
_KEPT = dict.fromkeys(["bo", "dz", "km", "lo", "my", "th"], "\u200b")
_KEPT |= dict.fromkeys(
    ["ar", "arz", "ckb", "fa", "he", "ps", "sd", "ug", "ur", "yi"],
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069",
)


def repair(language: str) -> list[Repair]:
    keep = f"(?![{_KEPT[language]}])" if language in _KEPT else ""
    dropped = re.compile(f"{keep}(?!{_VIRAMA}\u200b)(?:[{_CONTROL}]|{format_pattern()})")
    joining = format_pattern().partition("(?<![")[2].partition("])")[0]
    joiners = f"[^{joining}]", "[\u200c\u200d\u180e]"
    suspects = (f"{keep}[{_CONTROL}{_FORMAT}]", ""), joiners
    return [Repair(suspects, lambda text, _: dropped.sub("", text))]
