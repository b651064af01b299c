"""Drop control and format characters that mean nothing (`so\\xadft\\u200b` -> `soft`).

Joiners stay where `ems.text.normalise` says that they join, and zero-width spaces in scripts that
separate words with them.
"""

import re
from functools import partial

from ems.text.normalise import format_pattern
from ems.text.repairs.base import Repair

_CONTROL = "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]"  # the others are white space
_SIGNS = "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
_SIGNS += "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]"
BY_ZERO_WIDTH = ("km", "lo", "my", "th", "bo", "dz")


def repair(language: str) -> Repair:
    signs, pattern = _SIGNS, format_pattern()
    if language in BY_ZERO_WIDTH:
        signs, pattern = (each.replace("\u200b", "") for each in (signs, pattern))
    suspects = ((signs, ""), ("[\x00-\u05ff\u1c80-\uffff]", "[\u200c\u200d]"))
    return Repair(suspects, partial(re.compile(f"{_CONTROL}|{pattern}").sub, ""))
