"""Text damaged in named ways, each at a known rate, and how much of it is repaired."""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape
from html.entities import codepoint2name

import ftfy.bad_codecs  # noqa: F401  # registers encodings without gaps

from ems.corpora.identifier import letters_of
from ems.text.normalise import tidy
from ems.text.repairs.base import RepairReport, repairer

PAGES = ("1250", "1251", "1252", "1253", "1254", "1256")
CODECS = ("latin-1", *(f"sloppy-windows-{page}" for page in PAGES))
CYRILLIC = str.maketrans("АВЕКМНОРСТХаеорсух", "ABEKMHOPCTXaeopcyx")
GREEK = str.maketrans("ΑΒΕΗΙΚΜΝΟΡΤΧΥΖο", "ABEHIKMNOPTXYZo")
VIRAMAS = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"
CHINESE = ("zh", "ja")
Draw = random.Random
Damage = Callable[[str, str, Draw], str | None]  # None: this text cannot be damaged so


def mojibake(text: str, language: str, draw: Draw) -> str | None:
    return None if text.isascii() else text.encode().decode(draw.choice(CODECS))


def mojibake_twice(text: str, language: str, draw: Draw) -> str | None:
    codec = draw.choice(CODECS)
    return None if text.isascii() else text.encode().decode(codec).encode().decode(codec)


def entities(text: str, language: str, draw: Draw) -> str | None:
    codes = {code: f"&{name};" for code, name in codepoint2name.items() if code > 0x9F}
    escaped = escape(text).replace("&#x27;", "&apos;").translate(codes)
    if escaped == text:
        place = draw.randrange(len(text))
        escaped = f"{text[:place]}&#{ord(text[place])};{text[place + 1 :]}"
    return escape(escaped, quote=False) if draw.random() < 0.3 else escaped


def tags(text: str, language: str, draw: Draw) -> str | None:
    words = text.split(" ")
    place = draw.randrange(len(words))
    form = draw.choice(["<b>{}</b>", '<font color="#ff0000">{}</font>', "<i>{}</i>", "<br />{}"])
    words[place] = form.format(words[place])
    return " ".join(words)


def invisible(text: str, language: str, draw: Draw) -> str | None:
    places = [at for at in range(1, len(text)) if text[at - 1] not in VIRAMAS]
    sign = draw.choice("\xad\ufeff\u2060\x02\x07\x7f" + "\u200b" * (language not in ("th", "my")))
    for place in sorted(draw.sample(places, min(3, len(places))), reverse=True):
        text = text[:place] + sign + text[place:]
    return text


@cache
def forms() -> dict[str, str]:
    """Return {letter: its first presentation form}."""
    signs = map(chr, [*range(0xFB50, 0xFBB2), *range(0xFE80, 0xFEF5)])
    return {unicodedata.normalize("NFKC", sign): sign for sign in signs}


def presentation(text: str, language: str, draw: Draw) -> str | None:
    if language not in ("ar", "fa", "ur"):
        return None
    return "".join(forms().get(sign, sign) for sign in text)


def keyboard(text: str, language: str, draw: Draw) -> str | None:
    letters = {"fa": ("یک", "يك"), "ur": ("یک", "يك"), "ar": ("يك", "یک")}.get(language)
    return text.translate(str.maketrans(*letters)) if letters else None


def lookalikes(text: str, language: str, draw: Draw) -> str | None:
    table = GREEK if language == "el" else CYRILLIC
    if letters_of(language) and letters_of(language).match("a"):
        table = {latin: letter for letter, latin in CYRILLIC.items()}
    words = re.findall(r"[^\W\d_]{4,}", text)
    options = [(word, at) for word in words for at, x in enumerate(word) if ord(x) in table]
    if not options:
        return None
    word, at = draw.choice(options)
    return text.replace(word, word[:at] + chr(table[ord(word[at])]) + word[at + 1 :], 1)


def turkic(text: str, language: str, draw: Draw) -> str | None:
    if language == "lt" or not re.search(r"\bi", text):
        return None
    return re.sub(r"\bi(?!\u0307)", "i\u0307", text)


def full_width(text: str, language: str, draw: Draw) -> str | None:
    words = re.findall(r"[!-~]{2,}", text)
    if language in ("zh", "ja", "ko") or not words:
        return None
    word = draw.choice(words)
    return text.replace(word, "".join(chr(ord(sign) + 0xFEE0) for sign in word), 1)


@cache
def half() -> dict[str, str]:
    signs = list(map(chr, range(0xFF66, 0xFF9E)))
    every = [*signs, *(sign + mark for sign in signs for mark in "\uff9e\uff9f")]
    full = {unicodedata.normalize("NFKC", sign): sign for sign in every}
    return {key: value for key, value in full.items() if len(key) == 1}


def half_width(text: str, language: str, draw: Draw) -> str | None:
    return "".join(half().get(sign, sign) for sign in text) if language == "ja" else None


def quoted(text: str, draw: Draw) -> str:
    words = text.split(" ")
    place = draw.randrange(len(words))
    return (
        " ".join(words)
        if '"' in text
        else " ".join([*words[:place], f'"{words[place]}"', *words[place + 1 :]])
    )


def quotes(text: str, language: str, draw: Draw) -> str | None:
    return None if '""' in text else re.sub(r'(?<!\w)"([^"]+)"', r"``\1''", text)


def tokenised(text: str, language: str, draw: Draw) -> str | None:
    if language in (*CHINESE, "fr", "th", "my"):
        return None
    text = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " @-@ ", text)
    if language == "en":
        text = re.sub(r"n't\b", " n't", text)
        text = re.sub(r"(?<=\w)'(s|re|ve|ll|d|m)\b", r" '\1", text)
    text = re.sub(r"(?<=[\w)])(\.$|,(?= )|[!?;]+(?=\s|$))", r" \1", text)
    text = re.sub(r'(?<!\S)"(?=\w)([^"]*)(?<=\w)"(?!\S)', r'" \1 "', text)
    return escape(text, quote=False).replace("'", "&apos;") if draw.random() < 0.5 else text


def segmented(text: str, language: str, draw: Draw) -> str | None:
    if language not in CHINESE or re.search(r"[\s!-~]", text) or len(text) < 12:
        return None
    pieces = []
    for run in re.findall(r"\w+|\W", text):
        while run:
            size = draw.choice((1, 1, 2, 2, 2, 3))
            pieces, run = [*pieces, run[:size]], run[size:]
    return " ".join(pieces)


def escapes(text: str, language: str, draw: Draw) -> str | None:
    places = [at for at, sign in enumerate(text) if sign == " "]
    escaped = text
    if places:
        place = draw.choice(places)
        escaped = text[:place] + draw.choice(["\\n", "\\t", "\\r\\n"]) + text[place + 1 :]
    return escaped.replace('"', '\\"').replace("'", "\\'") if draw.random() < 0.5 else escaped


def bullets(text: str, language: str, draw: Draw) -> str | None:
    return draw.choice(["- ", "• ", "3) ", "(12) ", "ANNA: ", "– "]) + text


# kind -> the repair that mends it, the damage
KINDS: dict[str, tuple[str, Damage]] = {
    "mojibake": ("mojibake", mojibake),
    "mojibake, twice": ("mojibake", mojibake_twice),
    "entities": ("entities", entities),
    "tags": ("entities", tags),
    "invisible": ("invisible", invisible),
    "presentation forms": ("presentation", presentation),
    "kaf and yeh": ("presentation", keyboard),
    "look-alikes": ("lookalikes", lookalikes),
    "dotted i": ("turkic", turkic),
    "full width": ("widths", full_width),
    "half width": ("widths", half_width),
    "quotes": ("quotes", quotes),
    "tokenised": ("detokenise", tokenised),
    "segmented": ("detokenise", segmented),
    "escapes": ("escapes", escapes),
    "bullets": ("bullets", bullets),
}


@dataclass
class Score:
    """Counts of texts: damaged, of these restored; changed, of these right afterwards."""

    damaged: int = 0
    restored: int = 0
    changed: int = 0
    right: int = 0

    @property
    def recall(self) -> float:
        return 100 * self.restored / max(self.damaged, 1)

    @property
    def precision(self) -> float:
        return 100 * self.right / max(self.changed, 1)


def damaged(texts: list[str], language: str, kind: str, rate: float, seed: int = 0) -> list[str]:
    """Damage a share of the texts; some cannot be damaged in this way."""
    draw, damage = Draw(f"{seed} {language} {kind}"), KINDS[kind][1]
    return [
        (damage(text, language, draw) or text) if draw.random() < rate else text for text in texts
    ]


def measure(
    rows: list[tuple[str, str]], languages: tuple[str, str], kind: str, rate: float = 0.2, seed=0
) -> tuple[Score, list[tuple[str, str, str]]]:
    """Damage the first side of right rows in one way; return how all repairs mend it, and texts
    that are wrong afterwards: (right, damaged, repaired).
    """
    repair = repairer("default", languages)
    if kind == "quotes":
        rows = [(quoted(row[0], Draw(row[0])), row[1]) for row in rows]

    def repaired(pairs):
        numbered = [(*pair, line) for line, pair in enumerate(pairs)]
        return [tidy(row[0]) for row in repair(numbered, RepairReport())]

    firsts = damaged([row[0] for row in rows], languages[0], kind, rate, seed)
    rights, results = repaired(rows), repaired(zip(firsts, (row[1] for row in rows), strict=True))
    score, wrong = Score(), []
    for (text, _), first, right, result in zip(rows, firsts, rights, results, strict=True):
        score.damaged += first != text
        score.restored += first != text and result == right
        score.changed += result != tidy(first)
        score.right += result != tidy(first) and result == right
        if result != right:
            wrong.append((right, first, result))
    return score, wrong


def total(scores: list[Score]) -> Score:
    counts = Counter()
    for score in scores:
        counts.update(vars(score))
    return Score(**counts)
