"""The words of `moses`, many times faster and without Perl.

A rule of Moses looks at the characters beside a mark, and a full stop at the next word, too. So
what becomes of a word nearly always depends on that word alone, and a text has few different ones:
they are remembered. A line is read as a whole where a rule looks further (`hard`).

- Letters and digits are those of Unicode 14 on every machine; Perl has those of its own version.
- The script writes `DOTMULTI` for dots that stay together, and so makes a dot of that very word.
  It stays a word here.
"""

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from ems.segmenters.base import Segment, Segmenter, is_spaced, package

REMEMBERED = 100_000  # words, some 20 MB
LONGEST = 40  # characters of a word that is remembered: a longer one is hardly met again
ALWAYS, BEFORE_DIGITS = "always", "before digits"  # when a prefix keeps its full stop
# In place of the space between a word and a full stop that the next word may keep
_STOP, _STOP_OF_NUMBER = "\0", "\1"
_NUMERIC = re.compile(r"(.*)\s+#NUMERIC_ONLY#")
_DIGITS = "0123456789"

# Language -> what is left of an apostrophe, what is right of it, what the apostrophe becomes; in
# this order. A is alphabetic, N a number. Elsewhere each apostrophe is a word.
_APOSTROPHES = {
    "en": (
        ("[^A]", "[^A]", " ' "),
        ("[^AN]", "[A]", " ' "),
        ("[A]", "[^A]", " ' "),
        ("[A]", "[A]", " '"),
        ("[N]", "s", " '"),
    ),
    "fr": (
        ("[^A]", "[^A]", " ' "),
        ("[^A]", "[A]", " ' "),
        ("[A]", "[^A]", " ' "),
        ("[A]", "[A]", "' "),
    ),
}
_APOSTROPHES["it"] = _APOSTROPHES["fr"]


class Rules:
    """The rules of a language, for one word or for a whole line."""

    def __init__(self, language: str) -> None:
        kinds = _characters()
        letters, numbers = kinds["alphabetic"], kinds["number"]
        self.prefixes = _prefixes(language)
        self.apart = re.compile(rf"\.\.+|[^{letters}{kinds['digit']} .'`,-]")
        self.commas = (
            (re.compile(f"([^{numbers}]),"), r"\1 , "),
            (re.compile(f",([^{numbers}])"), r" , \1"),
        )
        self.apostrophes = tuple(
            (
                re.compile(f"({left})'({right})".replace("A", letters).replace("N", numbers)),
                rf"\1{between}\2",
            )
            for left, right, between in _APOSTROPHES.get(language, ())
        )
        self.ends = ",'" if self.apostrophes else ","
        self.letter = re.compile(f"[{letters}]")
        lower = kinds["lower"]
        self.lower = re.compile(f"[{lower}]")
        self.kept = re.compile(f"{_STOP}(?=\\. [{lower}])|{_STOP_OF_NUMBER}(?=\\. [{lower}0-9])")

    def hard(self, line: str) -> bool:
        """Return whether words of a line depend on more than themselves and the next one.

        A comma at an end of the line has no neighbour there, nor has an apostrophe. Two of them
        around a space claim it both, and one gets it.
        """
        return line[:1] in self.ends or line[-1:] in self.ends or (
            "' '" in line and bool(self.apostrophes)
        )

    def words(self, text: str) -> str:
        """Return the words of a text, with a mark where a full stop waits for the next text."""
        text = self.apart.sub(r" \g<0> ", text)
        if "," in text:
            for pattern, spaced in self.commas:
                text = pattern.sub(spaced, text)
        if "'" in text:
            for pattern, spaced in self.apostrophes:
                text = pattern.sub(spaced, text)
            if not self.apostrophes:
                text = text.replace("'", " ' ")
        words = text.split()
        if "." in text:
            following = [*words[1:], ""]
            words = list(map(self.full_stop, words, following))
        return " ".join(words)

    def full_stop(self, word: str, following: str) -> str:
        """Part a word from its full stop, unless it is an abbreviation or a sentence goes on.

        `following` is "" for the last word, whose full stop gets a mark if that decides.
        """
        stem = word[:-1]
        if not word.endswith(".") or not stem.strip("."):
            return word
        prefix = self.prefixes.get(stem)
        if prefix == ALWAYS or ("." in stem and self.letter.search(stem)):
            return word
        if not following:
            return f"{stem}{_STOP_OF_NUMBER if prefix else _STOP}."
        if self.lower.match(following) or (prefix and following[0] in _DIGITS):
            return word
        return f"{stem} ."

    def decide(self, text: str) -> str:
        """Keep full stops before words that keep them; part the others that have a mark."""
        return self.kept.sub("", text).replace(_STOP, " ").replace(_STOP_OF_NUMBER, " ")


class Remembered(dict[str, str]):
    """What becomes of a word between two others, made when it is asked for."""

    def __init__(self, words: Callable[[str], str]) -> None:
        super().__init__()
        self.words = words

    def __missing__(self, word: str) -> str:
        words = self.words(f" {word} ")
        if len(word) <= LONGEST:
            if len(self) >= REMEMBERED:
                self.clear()
            self[word] = words
        return words


def _make(language: str) -> Segment:
    rules = Rules(language)
    of_word = Remembered(rules.words).__getitem__

    def segment(line: str) -> str:
        line = line if is_spaced(line) else " ".join(line.split())
        return rules.words(line) if rules.hard(line) else " ".join(map(of_word, line.split(" ")))

    # a line feed is no lower-case letter: the block decides as its lines do
    return lambda lines: rules.decide("\n".join(map(segment, lines))).split("\n") if lines else []


@cache
def _characters() -> dict[str, str]:
    """Return the kinds of characters, as ranges of a pattern."""
    text = files("ems.segmenters").joinpath("moses_fast.txt").read_text("utf-8")
    plain = " ".join(line for line in text.split("\n") if not line.startswith("#"))
    kinds: dict[str, str] = {}
    for each in plain.split():
        if each.endswith(":"):
            kinds[name := each[:-1]] = ""
        else:
            kinds[name] += "-".join(chr(int(end, 16)) for end in each.split("-"))
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
