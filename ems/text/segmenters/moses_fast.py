"""The rules of `moses` in Python, several times faster and without Perl.

Each rule of the script is one pass over many lines at once, in which a line feed never counts as a
neighbour, so that lines do not affect each other. moses_fast.tsv has the rules of marks, by what is
left and right of one (A: letter, N: number, ^: none of the next, empty: any), for all languages
(*), for one, or for languages without rules of their own (-). Two differences to the script:
letters and digits follow Unicode 14 on every machine, not the Unicode of Perl's version; and the
word DOTMULTI stays, which the script writes for consecutive dots and turns into dots.
"""

import re
from functools import cache
from importlib.resources import files
from itertools import compress
from pathlib import Path

from ems.base.files import read_table
from ems.base.texts import batched
from ems.text.normalise import is_spaced
from ems.text.segmenters.base import Segment, Segmenter, cut_runs, package

ALWAYS, BEFORE_DIGITS = "always", "before digits"  # when an abbreviation keeps its full stop
# stand between a word and its full stop until the next word decides about a space there
_STOP, _STOP_OF_NUMBER = "\0", "\1"
_NUMERIC = re.compile(r"(.*)\s+#NUMERIC_ONLY#")
_FULL_STOP = re.compile(r"\.(?<=[^ \n.]\.)(?![^ \n])")
_TIGHT_COMMAS, _TIGHT = ",,", "'.?'"  # two marks that share a neighbour
_OTHER_PLANES = "\U00010000-\U0010ffff"


class Rules:
    """The rules of a language, for lines with single spaces."""

    def __init__(self, language: str) -> None:
        classes = _characters()
        rules = read_table(Path(__file__).with_suffix(".tsv"))
        alone = language not in {rule["language"] for rule in rules}
        self.apart = re.compile(_apart(classes))
        self.loose, self.tight = [], []  # without and with the neighbours in the match
        for rule in rules:
            if rule["language"] not in ("*", "-" if alone else language):
                continue
            mark, becomes = rule["mark"], rule["becomes"]
            one, other = _one(classes, rule["left"]), _one(classes, rule["right"])
            before, after = f"(?<={one}{mark})" if one else "", f"(?={other})" if other else ""
            self.loose.append((re.compile(mark + before + after), becomes))
            self.tight.append((re.compile(f"({one}){mark}({other})"), becomes))
        self.is_tight = re.compile(_TIGHT_COMMAS if alone else f"{_TIGHT_COMMAS}|{_TIGHT}").search
        self.abbreviations = _abbreviations(language)
        self.letter = re.compile(_one(classes, "A"))
        lower, counts = _one(classes, "L"), _one(classes, "L", also="0-9")
        self.kept = re.compile(f"{_STOP}(?=\\. {lower})|{_STOP_OF_NUMBER}(?=\\. {counts})")

    def segment(self, lines: list[str]) -> list[str]:
        """Return the words of each line. If two marks share a neighbour, only the first one sees
        it, as in the script. Most lines have no such marks and take a faster path.
        """
        text = "\n".join(lines)
        if not self.is_tight(text):
            return self.words(text, tight=False)
        tight = [bool(self.is_tight(line)) for line in lines]
        words = {
            kind: iter(self.words("\n".join(compress(lines, chosen)), tight=kind))
            for kind, chosen in ((True, tight), (False, [not each for each in tight]))
        }
        return [next(words[kind]) for kind in tight]

    def words(self, text: str, tight: bool) -> list[str]:
        """Return the words of each line of a text, separated by one or more spaces."""
        text = " ".join(self.apart.split(text))
        if tight:
            for pattern, becomes in self.tight:
                parts = pattern.split(text)  # text, left, right, text, ...
                parts[1::3] = [left + becomes for left in parts[1::3]]
                text = "".join(parts)
        else:
            for pattern, becomes in self.loose:
                text = pattern.sub(becomes, text)
        *parts, last = _FULL_STOP.split(text)
        for at, part in enumerate(parts):  # add its full stop, marked if the next word decides
            word = part.rsplit(None, 1)[-1]
            when = self.abbreviations.get(word)
            alone = when == ALWAYS or ("." in word and self.letter.search(word))
            parts[at] += "." if alone else f"{_STOP_OF_NUMBER if when else _STOP}."
        text = self.kept.sub("", "".join(parts) + last)
        return text.replace(_STOP, " ").replace(_STOP_OF_NUMBER, " ").split("\n")


def _apart(classes: dict[str, tuple[str, str]]) -> str:
    """Return the pattern of special characters and dots; it begins with a class, which is fast."""
    plane0, others = (classes["A"][at] + classes["D"][at] for at in (0, 1))
    special = rf"(?<=[^.{_OTHER_PLANES}])|(?<=[^\0-\uffff{others}])"
    return rf"([^{plane0} '`,\n-](?:{special}|(?<=\.)\.+))"


def _one(classes: dict[str, tuple[str, str]], names: str, also: str = "") -> str:
    """Return the pattern of a character of these classes, or of none of them (`^`), or of "s"
    itself; it never matches a line feed. The module re tries ranges above U+FFFF one by one, so
    only characters of those planes are compared with them.
    """
    if names in ("", "s"):
        return names
    no, names = ("^", names[1:]) if names[0] == "^" else ("", names)
    plane0 = "".join(classes[name][0] for name in names) + also
    others = "".join(classes[name][1] for name in names)
    others_too = rf"\n{_OTHER_PLANES}" if no else ""
    return f"(?:[{no}{plane0}{others_too}]|[{_OTHER_PLANES}](?<=[{no}{others}]))"


def _make(language: str) -> Segment:
    rules = Rules(language)

    def segment(lines: list[str]) -> list[str]:
        if not is_spaced(" ".join(lines)):  # true for nearly all lines of the text path
            lines = [line if is_spaced(line) else " ".join(line.split()) for line in lines]
        return rules.segment(lines)

    return lambda lines: [words for batch in batched(lines, len) for words in segment(batch)]


@cache
def _characters() -> dict[str, tuple[str, str]]:
    """Return {kind of character: (ranges up to U+FFFF, ranges above)}."""
    text = files("ems.text.segmenters").joinpath("moses_fast.txt").read_text("utf-8")
    plain = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    classes = {}
    for block in plain.split("\n\n"):
        name, *ranges = block.split()
        parts = ["-".join(chr(int(end, 16)) for end in each.split("-")) for each in ranges]
        plane0 = "".join(part for part in parts if part[0] <= "\uffff")
        classes[name] = plane0, "".join(part for part in parts if part[0] > "\uffff")
    return classes


def _abbreviations(language: str) -> dict[str, str]:
    """Return {word that keeps its full stop: when}; the English words if a language has no file."""
    folder = files("mosestokenizer").joinpath("nonbreaking_prefixes")
    path = folder.joinpath(f"nonbreaking_prefix.{language}")
    path = path if path.is_file() else folder.joinpath("nonbreaking_prefix.en")
    prefixes = {}
    # as in the script, white space at the end of a line belongs to the prefix
    for line in path.read_bytes().decode().split("\n"):
        if line and line != "0" and not line.startswith("#"):
            numeric = _NUMERIC.match(line)
            prefixes[numeric[1] if numeric else line] = BEFORE_DIGITS if numeric else ALWAYS
    return prefixes


NEEDS = (package("mosestokenizer"),)
SEGMENTER = Segmenter(make=_make, needs=NEEDS, prepare=cut_runs, cuts_marks=True)
