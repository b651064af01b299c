"""The tests of `clean.filters`: each looks at one pair of tidy text.

Right pairs must stay (docs/cleaning.md), so what has an explanation stays: another unit or
calendar, a name in Latin letters.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ems.corpora.identifier import letters_of
from ems.corpora.probe import LETTER
from ems.text.keys import folded_keys

Removes = Callable[[str, str], bool]
NUMBER, TWO_DIGITS = re.compile(r"\d{1,99}"), re.compile(r"\d\d")
GROUPED = re.compile(r"(?<=\d)[.,٬'’ \u00a0\u202f](?=\d{3}(?!\d))")  # thousands
SIGNS = ("@", "://", "www.", "WWW.")  # of an address, cheap to find
ADDRESS = re.compile(
    r"https?://\w|\bwww\.\w|(?<![\w@.+-])[\w.+-]+@[\w-]+\.[a-z]{2}", re.IGNORECASE | re.ASCII
)
UNITS = (1.609, 2.205, 3.281, 2.54, 1.094)  # mile, pound, foot, inch, yard
SHIFTS = (1, 12, 543, 621, 622)  # off by one; hours, Thai, Persian and Islamic years
YEARS = range(1000, 2101)  # have no unit
LEAST_SHARE = 0.1  # of the letters, in the script of the language: names are in Latin letters
LEAST_LATIN = 0.5
FEWEST_LETTERS = 12  # fewer in another script may be a name


def letters(*sides: str) -> bool:
    """Return whether a side has no letter."""
    return not all(map(LETTER.search, sides))


def addresses(*sides: str) -> bool:
    """Return whether only one side has a URL or an e-mail address."""
    one, other = (any(s in text for s in SIGNS) and ADDRESS.search(text) for text in sides)
    return bool(one) != bool(other)


def copies(first: str, second: str) -> bool:
    """Return whether the sides have the same letters and digits except for case."""
    one, other = LETTER.search(first), LETTER.search(second)
    if one and other and one[0].lower() != other[0].lower():
        return False  # cheaper than the keys
    return len({*folded_keys([first, second])}) == 1


def numbers(first: str, second: str) -> bool:
    """Return whether one number of two or more digits differs, and all others are the same.

    Digits of all scripts are compared; words, separators and leading zeros are not. A number with
    more or fewer digits may be another form (11 million, 1100万), so it stays.
    """
    if not (TWO_DIGITS.search(first) and TWO_DIGITS.search(second)):
        return False
    if sorted(NUMBER.findall(first)) == sorted(NUMBER.findall(second)):
        return False  # most pairs
    texts = (GROUPED.sub("", text) for text in (first, second))
    one, other = (Counter(str(int(n)) for n in NUMBER.findall(text)) for text in texts)
    if Counter("".join(one.elements())) == Counter("".join(other.elements())):
        return False  # 1,234.5 and 1.234,5
    lost, new = ([n for n in rest if len(n) > 1] for rest in (one - other, other - one))
    if len(lost) != 1 or len(new) != 1 or len(lost[0]) != len(new[0]):
        return False
    return not _same_measure(*sorted((int(lost[0]), int(new[0]))))


def _same_measure(low: int, high: int) -> bool:
    """Return whether two numbers may be the same length, weight, temperature, time or year."""
    if high - low in SHIFTS or (low in YEARS and high in YEARS):
        return high - low in SHIFTS
    exact = low % 5 and high % 5  # neither is rounded
    slack = max(0.6, high / 300) if exact else max(1, high / 40)
    celsius = abs((high - 32) / 1.8 - low) < (0.6 if exact else 1.5)
    return celsius or any(abs(low * unit - high) <= slack for unit in UNITS)


def script(languages: Sequence[str]) -> Removes:
    """Return the test for a side with hardly any letter in the script of its language."""
    import regex

    own = [letters_of(code) for code in languages]
    runs = [pattern and regex.compile(f"{pattern.pattern}+") for pattern in own]

    def count(pattern: Any, text: str) -> int:
        return len("".join(pattern.findall(text)))

    def other(pattern: Any, text: str) -> bool:
        if pattern is None:
            return False
        latin = pattern.match("a")
        if latin and 4 * (len(text) - len(text.encode("ascii", "ignore"))) <= len(text):
            return False  # cheaper: at most a quarter is not ASCII
        share = LEAST_LATIN if latin else LEAST_SHARE
        least = share * len(text)
        if count(pattern, text[: FEWEST_LETTERS + int(2 * least)]) >= least:
            return False  # whatever follows
        total = len(LETTER.findall(text))
        return total >= FEWEST_LETTERS and count(pattern, text) < share * total

    return lambda *sides: any(map(other, runs, sides))


def pair_tests(languages: Sequence[str], names: Sequence[str]) -> dict[str, Removes]:
    """Return the tests of these names, the cheapest first."""
    tests = {"letters": letters, "addresses": addresses, "numbers": numbers, "copies": copies}
    tests |= {"script": script(languages)} if "script" in names else {}
    return {name: test for name, test in tests.items() if name in names}
