"""Tidy text: NFC with single spaces, without control and format characters."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from ems.base.texts import is_plain

# C0/C1 controls, line and paragraph separators, BOM: no sentence needs them, and they break lines
CONTROL = r"[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]+"  # valid in Python and Oniguruma
_CONTROL = re.compile(CONTROL)
# category Cf (Unicode 17) without visible signs and joiners
_FORMAT = (
    "\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufff9-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
    "\U000e0020-\U000e007f"
)

Tidy = Callable[[str], str]


def tidy(text: str) -> str:
    """Normalise to NFC with single spaces, without control characters and line separators."""
    return " ".join(_CONTROL.sub(" ", unicodedata.normalize("NFC", text)).split())


def without_format(text: str) -> str:
    """Remove bidi controls, soft hyphens, zero-width spaces and similar format characters, but not
    the joiners of emoji and of letters that need them, and the Arabic signs that enclose a number.
    """
    return re.sub(format_pattern(), "", text)


@cache
def format_pattern() -> str:
    """Return the pattern that `without_format` removes, valid in Python and Oniguruma. The package
    regex knows these properties by name, but using a model must not require it.
    """
    lines = files("ems.text").joinpath("normalise.txt").read_text("utf-8").split("\n")
    ranges = " ".join(line for line in lines if not line.startswith("#")).split()
    joins = "".join("-".join(chr(int(end, 16)) for end in each.split("-")) for each in ranges)
    return f"[{_FORMAT}]|(?<![{joins}])[\u200c\u200d\u180e]"


def tidier(format_characters: str) -> Tidy:
    """Return the `tidy` for a value of `clean.format_characters`, "keep" or "drop"."""
    return (lambda text: tidy(without_format(text))) if format_characters == "drop" else tidy


def is_spaced(line: str) -> bool:
    """Return whether the only white space of a line is single spaces between words."""
    return is_plain(line) and "  " not in line and line[:1] != " " and line[-1:] != " "


def tidy_lines(texts: list[str], slow: Tidy = tidy) -> list[str]:
    """Apply `slow` (`tidy`, or a `tidier`) to each text, skipping texts that it would not change:
    printable text has no control, separator, format character or white space other than spaces.
    """
    normalised = unicodedata.is_normalized
    return [
        text if is_spaced(text) and (text.isascii() or normalised("NFC", text)) else slow(text)
        for text in texts
    ]
