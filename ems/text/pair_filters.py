"""The tests of `clean.filters`: each looks at one pair of tidy text and needs no setting.

Right pairs must stay (docs/cleaning.md has the shares), so a test looks for what a translation does
not do, and what has an explanation stays: another unit or calendar, a name in Latin letters.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ems.corpora.identifier import letters_of
from ems.corpora.probe import LETTER
from ems.text.keys import folded_keys

Removes = Callable[[str, str], bool]
NUMBER, TWO_DIGITS = re.compile(r"\d+"), re.compile(r"\d\d")
ADDRESS = re.compile(
    r"https?://\w|\bwww\.\w|(?<![\w@.+-])[\w.+-]+@[\w-]+\.[a-z]{2}", re.IGNORECASE | re.ASCII
)
UNITS = (1.609, 2.205, 3.281, 2.54, 1.094)  # mile, pound, foot, inch, yard
SHIFTS = (1, 12, 543, 621, 622)  # to noon, to the Thai, Persian and Islamic calendars; off by one
YEARS = range(1000, 2101)  # of these only the calendar changes
LONGEST = 99  # digits of a number that are compared
ROUND = 5  # a measure that is a multiple of it may be rounded
LEAST_SHARE = 0.1  # of the letters, in the script of the language
FEWEST_LETTERS = 12  # fewer in another script may be a name


def letters(first: str, second: str) -> bool:
    """Return whether a side has no letter."""
    return not (LETTER.search(first) and LETTER.search(second))


def copies(first: str, second: str) -> bool:
    """Return whether the sides have the same letters and digits except for case."""
    starts = [LETTER.search(text) for text in (first, second)]
    if all(starts) and starts[0][0].lower() != starts[1][0].lower():
        return False  # cheaper than the keys
    one, other = folded_keys([first, second])
    return one == other


def addresses(first: str, second: str) -> bool:
    """Return whether only one side has a URL or an e-mail address."""
    one, other = (
        any(sign in text for sign in ("@", "://", "www.", "WWW.")) and ADDRESS.search(text)
        for text in (first, second)
    )
    return bool(one) != bool(other)


def numbers(first: str, second: str) -> bool:
    """Return whether one number of two or more digits differs, and all others are the same.

    Digits of all scripts are compared; words, separators and leading zeros are not. A number with
    more or fewer digits may be a part of another expression (11 million, 1100万), so it stays.
    """
    if not (TWO_DIGITS.search(first) and TWO_DIGITS.search(second)):
        return False
    one, other = (
        [str(int(digits[:LONGEST])) for digits in NUMBER.findall(text)] for text in (first, second)
    )
    if Counter("".join(one)) == Counter("".join(other)):
        return False  # 1,234.5 and 1.234,5
    left, right = Counter(one), Counter(other)
    lost, new = (
        [number for number in rest.elements() if len(number) > 1]
        for rest in (left - right, right - left)
    )
    if len(lost) != 1 or len(new) != 1 or len(lost[0]) != len(new[0]):
        return False
    return not _same_measure(*sorted((int(lost[0]), int(new[0]))))


def _same_measure(low: int, high: int) -> bool:
    """Return whether two numbers may be the same length, weight, temperature, time or year."""
    if high - low in SHIFTS:
        return True
    if low in YEARS and high in YEARS:
        return False
    rounded = not (low % ROUND and high % ROUND)
    slack = max(1, high / 40) if rounded else max(0.6, high / 100)
    celsius = abs((high - 32) / 1.8 - low) < (1.5 if rounded else 0.6)
    return celsius or any(abs(low * unit - high) <= slack for unit in UNITS)


def script(languages: Sequence[str]) -> Removes:
    """Return the test for a side with hardly any letter in the script of its language."""
    import regex

    own = [letters_of(code) for code in languages]
    runs = [pattern and regex.compile(pattern.pattern + "+") for pattern in own]

    def count(pattern: Any, text: str) -> int:
        return len("".join(pattern.findall(text)))

    def other_script(pattern: Any, text: str) -> bool:
        if pattern is None:
            return False
        enough = LEAST_SHARE * len(text)
        if count(pattern, text[: FEWEST_LETTERS + int(2 * enough)]) >= enough:
            return False  # whatever follows
        total = len(LETTER.findall(text))
        return total >= FEWEST_LETTERS and count(pattern, text) < LEAST_SHARE * total

    return lambda *sides: any(map(other_script, runs, sides))


def pair_tests(languages: Sequence[str], names: Sequence[str]) -> dict[str, Removes]:
    """Return the tests of these names, in the order of cost."""
    tests = {"letters": letters, "addresses": addresses, "numbers": numbers, "copies": copies}
    chosen = {name: test for name, test in tests.items() if name in names}
    return chosen | ({"script": script(languages)} if "script" in names else {})
