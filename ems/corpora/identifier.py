"""Identify the language of a text with the package py3langid, and the script of a language.

py3langid is langid.py (Lui and Baldwin, ACL 2012 demos) with a newer model; docs/log.md compares it
with others. Its probability depends on the length: 5 words of the right language have under 0.7 of
another one in 0.05 % of cases (docs/data.md).
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from ems.config.languages import code_among, flores_codes

CODES = {"nb": "no"}  # our code -> the package's code
NO_LANGUAGE = "zxx"  # numbers, markup, addresses
# codes of the package that are not distinguished: short sentences often fit several
MACROLANGUAGES = ("bs hr sr", "id ms", "nn no", "wuu yue zh", "ar ary arz", "ku sdh", "ltg lv")
# scripts of ISO 15924 as the package regex names them, if they are several or have another name
SCRIPTS = {"Jpan": "Hani Hira Kana", "Hans": "Hani", "Hant": "Hani", "Hang": "Hang Hani"}
TWO_SCRIPTS = ("az", "bs", "kk", "ku", "pa", "sr", "uz")  # written in several, so in any


@cache
def identifier() -> Any:
    """Return the identifier; `classify(text)` gives (code, probability), `labels` all codes."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def alike(code: str) -> tuple[str, ...]:
    """Return the package's codes that count as a language; () if it does not know the language."""
    known = code_among(identifier().labels, CODES.get(code, code))
    groups = [tuple(group.split()) for group in MACROLANGUAGES]
    return next((group for group in groups if known in group), (known,) if known else ())


def unknown(languages: Iterable[str]) -> list[str]:
    """Return the languages that the package cannot identify."""
    return [code for code in languages if not alike(code)]


@cache
def letters_of(code: str) -> Any:
    """Return the regular expression of the letters of a language; None: any script is right."""
    import regex

    known = code_among(flores_codes(), code)
    script = flores_codes().get(known or "", "").partition("_")[2]
    if not script or known in TWO_SCRIPTS:
        return None
    names = SCRIPTS.get(script, script).split()
    return regex.compile("[" + "".join(rf"\p{{sc={name}}}" for name in names) + "]")
