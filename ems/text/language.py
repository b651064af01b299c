"""The language of each side of a pair, by py3langid (Lui and Baldwin, ACL 2012 demos, retrained).

docs/log.md has its accuracy beside that of other packages. Languages of one macrolanguage of
ISO 639-3 are not told apart, since short sentences of Croatian and Serbian, or of Indonesian and
Malay, often fit both.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from ems.base.errors import EmsError

PACKAGE = "py3langid"
CODES = {"nb": "no"}  # of ours -> of the package
NO_LANGUAGE = "zxx"  # numbers, markup, addresses
MACROLANGUAGES = (  # ISO 639-3, of the package's codes
    *("bs hr sr", "id ms", "nn no", "wuu yue zh", "ar ary arz", "ku sdh", "ltg lv"),
)


def check_installed() -> None:
    """Raise `EmsError` when the package is not installed."""
    if find_spec(PACKAGE) is None:
        raise EmsError(
            f"clean.language: the package {PACKAGE} is not installed; `pip install -e .[lid]`, or "
            "leave clean.language out"
        )


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def unknown(languages: Iterable[str]) -> list[str]:
    """Return the languages that the package does not know."""
    known = set(_identifier().labels)
    return [code for code in languages if CODES.get(code, code) not in known]


class Identifier:
    """Finds the sides of rows that are in another language than in that of their column.

    `threshold` is the least probability of the other language. Raises `EmsError` when the package
    is not installed.
    """

    def __init__(self, sides: Sequence[str], threshold: float) -> None:
        check_installed()
        self.threshold, missing = threshold, unknown(sides)
        self.own = [None if code in missing else _alike(code) for code in sides]

    def others(self, rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """Return the other language that each side of each row is in, "" for its own."""
        return [tuple(map(self._other, row, self.own)) for row in rows]

    def swapped(self, others: tuple[str, ...]) -> bool:
        """Return whether each side of a pair is in the language of the other side."""
        return all(others) and all(
            own and other in own for other, own in zip(others, reversed(self.own), strict=True)
        )

    def _other(self, text: str, own: frozenset[str] | None) -> str:
        if own is None:
            return ""
        language, probability = _identifier().classify(text)
        same = language in own or language == NO_LANGUAGE
        return "" if same or probability < self.threshold else language


def _alike(code: str) -> frozenset[str]:
    """Return the package's codes of a language and of those that are not told apart from it."""
    code = CODES.get(code, code)
    groups = [group.split() for group in MACROLANGUAGES]
    return frozenset(next((group for group in groups if code in group), [code]))
