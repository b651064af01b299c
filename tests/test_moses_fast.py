"""Laws of the segmenter moses-fast: its words are the Perl script's, in lines made of all
that its rules look at, in each language with a file of abbreviations, and in some without.

`python tests/test_moses_fast.py` prints the table of its characters, as Perl has them.
"""

import random
import subprocess
import textwrap
from functools import cache, partial
from importlib.resources import files
from itertools import groupby

import pytest
from made.segmenters import NASTY, _look_for_the_tools_anew, usable  # noqa: F401

from ems.text.segmenters import moses_fast
from ems.text.segmenters.base import segmenter

FOLDER = files("mosestokenizer").joinpath("nonbreaking_prefixes")
FILES = sorted(path.name.partition(".")[2] for path in FOLDER.iterdir() if path.name[0] == "n")
WITHOUT = ["", "af", "th", "und", "zh"]  # English abbreviations, apostrophes apart
LINES = 1000
PREFIXES, CHARACTERS = moses_fast._abbreviations, moses_fast._characters

# Pieces that words are made of. All characters are of one kind in every version of Unicode.
LETTERS = [*"aZßéñДяλΩאشहกあ漢한ªǅ", "e\u0301", "क\u093f", "ก\u0e34", "\U00010400", "𝐚"]
NUMBERS = [*"0159²½٣५Ⅳ①", "𝟙"]
OTHERS = [*'"!?;:()[]{}<>|&/\\@#$%^*_+=~«»“”‘’…–—。、、·§€№✓️😀', "\u0e48", "\u094d"]
OTHERS += ["\u200b", "\u200d", "\U000e0041", "\ue000", "\ufffd", "\u00ad", "\u1ab0"]
MARKS = [*"..,,''-`", "..", "...", ",,", "''", "--", "'s", "' '", ",'", ".,"]
SPACES = [
    *" " * 12,
    "  ",
    "\u00a0",
    "\u3000",
    "\u2009",
    "\u202f",
    "' '",
    " '",
    "' ",
    " ,",
    ", ",
    ". 𝐚",
]


@cache
def nasty(language):
    """Return lines of all that the rules look at, of a language's abbreviations too."""
    draw = random.Random(f"moses {language}")
    prefixes = [f"{each.split()[0]}." for each in PREFIXES(language) if each.strip()]
    kinds = [LETTERS, LETTERS, NUMBERS, OTHERS, MARKS, MARKS]

    def word():
        if draw.random() < 0.25:
            return draw.choice(prefixes)
        return "".join(draw.choice(draw.choice(kinds)) for _ in range(draw.randint(1, 5)))

    lines = [
        "".join(word() + draw.choice(SPACES) for _ in range(draw.randint(1, 8)))
        for _ in range(LINES)
    ]
    plain = [each.rstrip() for each in lines[::2]]  # ends in a word
    return [*NASTY, *plain, *lines[1::2]]


@cache
def perl(language):
    return usable("moses", language)(nasty(language))


def different(language):
    """Return the lines that moses-fast segments otherwise than Perl, with both."""
    ours = segmenter("moses-fast", language)(nasty(language))
    rows = zip(nasty(language), perl(language), ours, strict=True)
    return [row for row in rows if row[1] != row[2]]


@pytest.mark.parametrize("language", [*FILES, *WITHOUT])
def test_its_words_are_those_of_the_perl_script(language):
    assert different(language) == []


def test_a_line_has_the_same_words_beside_any_others():
    segment, lines = usable("moses-fast", "fr"), nasty("fr")
    words = segment(lines)
    assert [segment([line])[0] for line in lines] == words
    assert segment(lines[::-1] * 3) == words[::-1] * 3


def test_the_mark_of_the_script_stays_a_word():
    assert usable("moses-fast", "en")(["a DOTMULTI. b"]) == ["a DOTMULTI. b"]


# --- a rule that is wrong is seen


def without(rules, at):
    return (*rules[:at], *rules[at + 1 :])


def few(name, plane):
    kinds = CHARACTERS()
    both = list(kinds[name])
    both[plane] = "\uffff\U0010ffff"[plane]
    return {**kinds, name: tuple(both)}


RULES = {"fr": moses_fast._FRENCH, "en": moses_fast._ENGLISH}
MUTATIONS = {
    **{
        f"comma {at}": ("de", "_COMMAS", without(moses_fast._COMMAS, at))
        for at in range(len(moses_fast._COMMAS))
    },
    **{
        f"apostrophe {at} of {code}": (code, "_APOSTROPHES", {code: without(rules, at)})
        for code, rules in RULES.items()
        for at in range(len(rules))
    },
    "other apostrophes": ("it", "_APOSTROPHES", {}),
    "English apostrophes": ("de", "_APOSTROPHES", {"de": moses_fast._ENGLISH}),
    "commas side by side": ("de", "_TIGHT_COMMAS", "\0"),
    "apostrophes side by side": ("en", "_TIGHT", "'.'"),
    "apostrophes around a letter": ("en", "_TIGHT", "''"),
    "no abbreviations": ("de", "_abbreviations", lambda language: {}),
    "abbreviations of another language": ("de", "_abbreviations", lambda language: PREFIXES("en")),
    "before all or none": (
        *("en", "_abbreviations"),
        lambda language: dict.fromkeys(PREFIXES(language), moses_fast.ALWAYS),
    ),
    "before digits too": (
        *("en", "_abbreviations"),
        lambda language: dict.fromkeys(PREFIXES(language), moses_fast.BEFORE_DIGITS),
    ),
    **{
        f"characters {name} {where} U+FFFF": ("fr", "_characters", partial(few, name, plane))
        for name in "ADNL"
        for plane, where in enumerate(("up to", "above"))
    },
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_rule_that_is_wrong_is_seen(name, monkeypatch):
    language, attribute, value = MUTATIONS[name]
    perl(language)
    monkeypatch.setattr(moses_fast, attribute, value)
    assert different(language)


# --- characters

KINDS = {"A": r"\p{IsAlpha}", "D": r"\p{IsDigit}", "N": r"\p{IsN}", "L": r"\p{IsLower}"}
PROGRAM = r"""
no warnings; use Unicode::UCD; print Unicode::UCD::UnicodeVersion(), "\n";
for my $code (0 .. 0x10ffff) {
    my $c = chr $code; utf8::upgrade($c);
    my $alnum = $c =~ /\p{IsAlpha}/ || $c =~ /\p{IsDigit}/;
    die "IsAlnum" unless !!$alnum == !!($c =~ /\p{IsAlnum}/);
    die "white space" if $c =~ /\s/ && ($alnum || $c =~ /\p{IsN}/);
    my @kinds = grep { $c =~ /$ARGV[$_]/ } 0 .. $#ARGV;
    print join(" ", $code, @kinds), "\n" if @kinds;
}
"""


def of_perl():
    """Return Perl's version of Unicode, and the code points of each kind."""
    command = ["perl", "-e", PROGRAM, *KINDS.values()]
    version, *rows = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    kinds = {name: set() for name in KINDS}
    for code, *places in (map(int, row.split()) for row in rows):
        for place in places:
            kinds[list(KINDS)[place]].add(code)
    return version, kinds


def ranges(codes):
    """Return code points as ranges in hex."""
    runs = groupby(enumerate(sorted(codes)), key=lambda each: each[1] - each[0])
    ends = [[code for _, code in run] for _, run in runs]
    return " ".join(f"{e[0]:x}-{e[-1]:x}" if len(e) > 1 else f"{e[0]:x}" for e in ends)


def table(kinds):
    blocks = [f"{name} {ranges(codes)}" for name, codes in kinds.items()]
    return "\n\n".join(textwrap.fill(block, 100, break_on_hyphens=False) for block in blocks) + "\n"


def test_its_characters_are_those_of_perl():
    usable("moses", "en")
    version, kinds = of_perl()
    text = files("ems.text.segmenters").joinpath("moses_fast.txt").read_text()
    ours = text.partition("\n\n")[2]
    if version == "14.0.0":
        assert ours == table(kinds)
    else:  # newer letters, most of them Chinese
        for name, *each in (block.split() for block in ours.split("\n\n")):
            ends = [[int(end, 16) for end in one.split("-")] for one in each]
            codes = {code for one in ends for code in range(one[0], one[-1] + 1)}
            assert len(codes ^ kinds[name]) < 0.2 * len(codes), (name, version)


if __name__ == "__main__":
    print(table(of_perl()[1]), end="")
