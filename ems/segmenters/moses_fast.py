"""The words of `moses`, many times faster and without Perl.

A rule of Moses looks at the characters beside a mark, and a full stop at the next word, too. So
what becomes of a word nearly always depends on that word alone, and a text has few different ones:
they are remembered. A line is read as a whole where a rule looks further (`hard`).

- Letters and digits are those of Unicode 14 on every machine; Perl has those of its own version.
- The script writes `DOTMULTI` for dots that stay together, and so makes a dot of that very word.
  It stays a word here.
"""

import re
from functools import cache
from importlib.resources import files

from ems.batches import batched
from ems.segmenters.base import Segment, Segmenter, is_spaced, package

REMEMBERED = 1_000_000  # characters of words, some 20 MB of memory
ALWAYS, BEFORE_DIGITS = "always", "before digits"  # when a prefix keeps its full stop
# In place of the space between a word and a full stop that the next word may keep
_STOP, _STOP_OF_NUMBER = "\0", "\1"
_FIRST, _LAST, _SPACE = "\2", "\3", "\4"  # of `Rules.marked`
_NUMERIC = re.compile(r"(.*)\s+#NUMERIC_ONLY#")

# What is left of a mark, what is right of it, what the mark becomes. Each rule sees what the one
# before it made. A letter, N number, ^ neither of those that follow; "" for anything.
Rule = tuple[str, str, str]
_COMMAS: tuple[Rule, ...] = (("^N", "", " , "), ("", "^N", " , "))
_APOSTROPHE: tuple[Rule, ...] = (("", "", " ' "),)
_FRENCH: tuple[Rule, ...] = (
    ("^A", "^A", " ' "),
    ("^A", "A", " ' "),
    ("A", "^A", " ' "),
    ("A", "A", "' "),
)
_ENGLISH: tuple[Rule, ...] = (
    ("^A", "^A", " ' "),
    ("^AN", "A", " ' "),
    ("A", "^A", " ' "),
    ("A", "A", " '"),
    ("N", "s", " '"),
)
_APOSTROPHES = {"en": _ENGLISH, "fr": _FRENCH, "it": _FRENCH}  # of other languages: _APOSTROPHE
_OTHER_PLANES = "\U00010000-\U0010ffff"


class Rules:
    """The rules of a language, for pieces of text: lines, or words with a space on both sides."""

    def __init__(self, language: str) -> None:
        kinds = _characters()
        apostrophes = _APOSTROPHES.get(language, _APOSTROPHE)
        self.prefixes = _prefixes(language)
        special = _one(kinds, "^AD", also=r" .'`,\-")
        self.apart = re.compile(rf"(\.\.+|{special})")
        self.rules = {
            mark: [
                (re.compile(f"({_one(kinds, left)}){mark}({_one(kinds, right)})"), becomes)
                for left, right, becomes in rules
            ]
            for mark, rules in ((",", _COMMAS), ("'", apostrophes))
        }
        self.looks_around = ",'" if apostrophes != _APOSTROPHE else ","
        self.letter = re.compile(_one(kinds, "A"))
        lower, counts = _one(kinds, "L"), _one(kinds, "L", also="0-9")
        self.kept = re.compile(f"{_STOP}(?=\\. {lower})|{_STOP_OF_NUMBER}(?=\\. {counts})")

    def marked(self, lines: list[str]) -> str:
        """Return lines, one under another, with a mark where a word depends on more than itself.

        A comma at an end of the line has no neighbour there, nor has an apostrophe. Two of them
        around a space claim it both, and one gets it: they stay one word at first.
        """
        text = "\n".join(["", *lines, ""])
        for each in self.looks_around:
            text = text.replace(f"\n{each}", f"\n{_FIRST}{each}")
            text = text.replace(f"{each}\n", f"{each}{_LAST}\n")
        if "'" in self.looks_around:
            for _ in range(2):  # the second time for each other space of ' ' ' '
                text = text.replace("' '", f"'{_SPACE}'")
        return text[1:-1]

    def words(self, marked: list[str]) -> list[str]:
        """Return the words of each marked word, with a mark where a full stop is undecided."""
        text = "\n".join([f" {word} " for word in marked])
        text = text.replace(f" {_FIRST}", "").replace(f"{_LAST} ", "").replace(_SPACE, " ")
        texts = " ".join(self.apart.split(text)).split("\n")
        for mark, rules in self.rules.items():
            at = [number for number, text in enumerate(texts) if mark in text]
            if at:
                made = _apply(rules, "\n".join([texts[number] for number in at])).split("\n")
                for number, text in zip(at, made, strict=True):
                    texts[number] = text
        return [
            " ".join(map(self.full_stop, text.split()) if "." in text else text.split())
            for text in texts
        ]

    def full_stop(self, word: str) -> str:
        """Mark a full stop that is parted from its word unless the next word keeps it."""
        stem = word[:-1]
        if word[-1] != "." or not stem.strip("."):
            return word
        prefix = self.prefixes.get(stem)
        if prefix == ALWAYS or ("." in stem and self.letter.search(stem)):
            return word
        return f"{stem}{_STOP_OF_NUMBER if prefix else _STOP}."

    def decide(self, text: str) -> str:
        """Keep the marked full stops before words that keep them; part the others."""
        return self.kept.sub("", text).replace(_STOP, " ").replace(_STOP_OF_NUMBER, " ")


def _apply(rules: list[tuple[re.Pattern[str], str]], text: str) -> str:
    """Return the text after one rule after another."""
    for pattern, becomes in rules:
        parts = pattern.split(text)  # text, left, right, text, ...
        parts[1::3] = [left + becomes for left in parts[1::3]]
        text = "".join(parts)
    return text


def _one(kinds: dict[str, tuple[str, str]], names: str, also: str = "") -> str:
    """Return the pattern of a character of some kinds, or of none (`^`), or of a letter itself.

    A line feed is none: a piece of text ends there. The module re goes through ranges above U+FFFF
    one by one, so it is asked about them only for characters of those planes.
    """
    if names in ("", "s"):
        return names
    no, names = ("^", names[1:]) if names[0] == "^" else ("", names)
    plane0 = "".join(kinds[name][0] for name in names) + also
    others = "".join(kinds[name][1] for name in names)
    others_too = rf"\n{_OTHER_PLANES}" if no else ""
    return f"(?:[{no}{plane0}{others_too}]|[{_OTHER_PLANES}](?<=[{no}{others}]))"


class Memory:
    """What became of the words that were met."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._forget()

    def _forget(self) -> None:
        self.known, self.characters = {"\n": "\n"}, 0

    def segment(self, lines: list[str]) -> list[str]:
        """Return the words of lines that have single spaces."""
        words = self.rules.marked(lines).replace("\n", " \n ").split(" ")
        made = list(map(self.known.get, words))
        if None in made:
            self._learn(words, {word for word, one in zip(words, made, strict=True) if one is None})
            made = list(map(self.known.__getitem__, words))
        return self.rules.decide(" ".join(made).replace(" \n ", "\n")).split("\n")

    def _learn(self, words: list[str], new: set[str]) -> None:
        if self.characters + sum(map(len, new)) > REMEMBERED:
            self._forget()
            new = set(words) - set(self.known)
        self.known.update(zip(new, self.rules.words(list(new)), strict=True))
        self.characters += sum(map(len, new))


def _make(language: str) -> Segment:
    memory = Memory(Rules(language))

    def segment(lines: list[str]) -> list[str]:
        return memory.segment(
            [line if is_spaced(line) else " ".join(line.split()) for line in lines]
        )

    return lambda lines: [line for batch in batched(lines, len) for line in segment(batch)]


@cache
def _characters() -> dict[str, tuple[str, str]]:
    """Return the ranges of each kind of character: up to U+FFFF, and above."""
    text = files("ems.segmenters").joinpath("moses_fast.txt").read_text("utf-8")
    plain = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    kinds = {}
    for block in plain.split("\n\n"):
        name, *ranges = block.split()
        ends = [[chr(int(end, 16)) for end in each.split("-")] for each in ranges]
        kinds[name] = (
            "".join("-".join(each) for each in ends if each[0] <= "\uffff"),
            "".join("-".join(each) for each in ends if each[0] > "\uffff"),
        )
    return kinds


def _prefixes(language: str) -> dict[str, str]:
    """Return the words that keep their full stop, and when; English ones for want of a file."""
    folder = files("mosestokenizer").joinpath("nonbreaking_prefixes")
    path = folder.joinpath(f"nonbreaking_prefix.{language}")
    path = path if path.is_file() else folder.joinpath("nonbreaking_prefix.en")
    prefixes = {}
    # read as the script does: white space at the end of a line is a part of the prefix
    for line in path.read_bytes().decode().split("\n"):
        if line and line != "0" and not line.startswith("#"):
            numeric = _NUMERIC.match(line)
            prefixes[numeric[1] if numeric else line] = BEFORE_DIGITS if numeric else ALWAYS
    return prefixes


SEGMENTER = Segmenter(make=_make, needs=(package("mosestokenizer"),))
