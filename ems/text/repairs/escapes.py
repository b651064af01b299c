r"""Undo escapes of source code (`Ready?\nGo, \"now\".` -> `Ready? Go, "now".`), except in paths and formulas."""

import re

from ems.text.repairs.base import Repair

_BREAK, _QUOTE = re.compile(r"(?:\\[nrt])+"), re.compile(r"""\\(["'/])""")
_CODE = re.compile(
    r"\b[A-Za-z]:\\|\\\\|\\[^nrt\"'/\s]|\\(?:nabla|neq?|ni|not|nu|rho|r?right|rm|tan|tau|text|theta|times|to)\b"
)


def repair(language: str) -> Repair:
    return Repair(((r"\\", "[nrt\"'/]"),), _mended)


def _mended(text: str) -> str:
    return text if _CODE.search(text) else _QUOTE.sub(r"\1", _BREAK.sub(" ", text))
