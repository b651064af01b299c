"""Noise of pairs: right pairs damaged in named ways, and what the filters find of it."""

import random
import re
from collections import Counter

from made.text import passed

from ems.text.filters import CleanReport

FIGURES = re.compile(r"\d{3,}")
REASONS = {  # way of damage -> the filter that is there for it
    **{"swapped": "swapped", "copied": "copies", "copied in other case": "copies"},
    **{"number": "numbers", "address": "addresses", "script": "script", "letters": "letters"},
    **{"truncated": "truncated", "glued": "length", "repeated": "near_duplicates"},
    "language": "language",
}
WORDS = ["Read more", "Siehe", "cf.", ">>", ""]


def other_number(text, translation, draw):
    """The text with another number of as many digits, or None if the translation has it not."""
    places = [place for place in FIGURES.finditer(text) if place[0] in translation]
    if not places:
        return None
    place = draw.choice(places)
    least = 10 ** (len(place[0]) - 1)
    numbers = draw.sample(range(least, 10 * least), 2)
    new = next(number for number in numbers if number != int(place[0]))
    return f"{text[: place.start()]}{new}{text[place.end() :]}"


def damaged(kind, pair, draw, others, foreign):
    """The pair damaged in one way, or None where it cannot be. `others` are right pairs, `foreign`
    sentences in other languages: "script" in another script, "language" in the same one."""
    side = draw.randrange(2)
    text, kept = pair[side], pair[1 - side]
    address = f"{draw.choice(WORDS)} https://www.example{draw.randrange(99)}.org/{draw.random()}"
    cut = text[: int(len(text) * draw.uniform(0.2, 0.5))].rstrip()
    new = {
        "copied": kept,
        "copied in other case": f"{kept.rstrip('.')}!".upper(),
        "number": other_number(text, kept, draw),
        "address": draw.choice([f"{text} {address}", f"{address} {text}", f"{text} ({address})"]),
        "letters": draw.choice(["—", "1.", "(12) 3 %", "…", "* * *", "2019-03-04 12:30"]),
        "truncated": cut if len(text) > 40 else None,
        "glued": " ".join([text, *(other[side] for other in draw.sample(others, 4))]),
        "script": draw.choice(foreign["script"]) if foreign["script"] else None,
        "language": draw.choice(foreign["language"]) if foreign["language"] else None,
        "swapped": kept,
        "repeated": text,
    }[kind]
    if new is None:
        return None
    result = [new, new]
    result[1 - side] = text if kind == "swapped" else kept
    if kind == "repeated":
        first, second = draw.choice(others)
        result = [f"{first.rstrip('.')}!", second.upper()]
    return tuple(result)


def noisy(pairs, kinds, rate, seed, foreign):
    """(pair, kind) in the order of the pairs; `rate` of them are damaged, the others have ""."""
    draw, rows = random.Random(seed), []
    for at, pair in enumerate(pairs):
        kind = draw.choice(kinds) if at > 20 and draw.random() < rate else ""
        earlier = [row for row, damage in rows[-50:] if not damage]
        new = (
            damaged(kind, pair, draw, earlier if len(earlier) > 9 else pairs[:9], foreign)
            if kind
            else None
        )
        rows.append((new or pair, kind if new else ""))
    return rows


def found(rows, languages, settings):
    """(kind -> number, (kind, reason) -> number) of rows after the filters; reason "": kept."""
    report, reasons = CleanReport(read=len(rows)), {}
    keep = report.keep

    def noted(batch, reason, stays):
        reasons.update((row[2], reason) for row, stay in zip(batch, stays, strict=True) if not stay)
        return keep(batch, reason, stays)

    report.keep = noted
    numbered = [(*pair, at) for at, (pair, _) in enumerate(rows)]
    kept = {row[2] for row in passed(numbered, report, languages, settings=settings)}
    assert kept.isdisjoint(reasons)
    assert len(kept) + len(reasons) == len(rows) == report.read
    assert report.kept + report.removed.total() == report.read
    return Counter(kind for _, kind in rows), Counter(
        (kind, reasons.get(at, "")) for at, (_, kind) in enumerate(rows)
    )
