"""What OPUS has of a language or of a pair: a row per corpus, in its newest release."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ems.base.errors import EmsError
from ems.config.languages.opus import opus_date, opus_files, opus_pair, opus_releases
from ems.corpora.catalogue import NOISE, about, catalogue, licence_of
from ems.workflow.downloads import UNKNOWN, aligned
from ems.workflow.start.names import Named, language_of, relatives

PIVOT = "en"


@dataclass(frozen=True)
class Offer:
    """What a corpus has of a pair of languages: its files, their sentence pairs (None: not
    counted), their KB.
    """

    corpus: str
    version: str
    files: tuple[str, ...]
    pairs: int | None
    kilobytes: int

    @property
    def noise(self) -> str:
        """The class of the corpus, one of NOISE."""
        return about(self.corpus).noise


def offers(first: str, second: str) -> list[Offer]:
    """Return what each corpus has of a pair of languages, the cleanest and largest first: what an
    entry of `corpora` takes of it.
    """
    found = (_offer(corpus, first, second) for corpus in opus_releases())
    return sorted(
        (offer for offer in found if offer.files),
        key=lambda offer: (list(NOISE).index(offer.noise), -(offer.pairs or 0), offer.corpus),
    )


def _offer(corpus: str, first: str, second: str) -> Offer:
    version = opus_releases()[corpus][-1]
    known = opus_files(corpus, version)
    files = opus_pair(corpus, version, first, second)
    counts = [known[file].pairs for file in files]
    pairs = None if None in counts else sum(counts)
    return Offer(corpus, version, files, pairs, sum(known[file].kilobytes for file in files))


def partners(language: str) -> dict[str, int]:
    """Return the languages that OPUS has together with one -> the number of corpora."""
    return _partners().get(language, {})


@cache
def _partners() -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for corpus, versions in opus_releases().items():
        files = opus_files(corpus, versions[-1])
        codes = {code for file in files for code in file.split("-")}
        known = {code: language_of(corpus, code) for code in codes}
        for pair in {tuple(known[code] for code in file.split("-")) for file in files}:
            for first, second in (pair, pair[::-1]):
                with_first = counts.setdefault(first, {})
                with_first[second] = with_first.get(second, 0) + 1
    return counts


def nearest(language: Named) -> str:
    """Return what OPUS has instead of a language: "; it has Persian (fa), ...", or nothing."""
    near = [str(each) for each in relatives(language) if partners(each.code)]
    return f"; nearest to it OPUS has {', '.join(near)}" if near else ""


def search(first: Named, second: Named) -> list[Offer]:
    """Return `offers` of a pair. Raises `EmsError` if OPUS has none of it, with what it has."""
    if first == second:
        raise EmsError(f"expected two languages, found {first} twice")
    if found := offers(first.code, second.code):
        return found
    others = partners(first.code)
    most = sorted(others, key=lambda code: (-others[code], code))[:8]
    has = f"; it has {first} with {', '.join(most)}" if most else ""
    raise EmsError(
        f"OPUS has no text of {first} and {second}, as of {opus_date()}{has}{nearest(first)}"
    )


def as_json(found: list[Offer]) -> str:
    """Return the offers as JSON; null is what is not known."""
    rows = [
        {
            **{"corpus": offer.corpus, "version": offer.version, "noise": offer.noise},
            **{"files": list(offer.files), "sentence_pairs": offer.pairs},
            **{"kilobytes": offer.kilobytes, "licence": about(offer.corpus).licence or None},
        }
        for offer in found
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def as_text(first: Named, second: Named, found: list[Offer], every: bool) -> str:
    """Return the offers as a table; without `every` small corpora share a line at the end."""
    counted = sum(offer.pairs or 0 for offer in found)
    shown = [offer for offer in found if every or _is_large(offer, counted)]
    head = ("corpus", "version", "class", "sentence pairs", "MB", "files", "licence")
    title = f"{first} and {second}: {counted:,} sentence pairs in {len(found)} corpora of OPUS"
    lines = [title, ""]
    lines += aligned([head, *map(_cells, shown)], "lllrrll")
    lines += ["", *_notes(first, second, found, shown)]
    return "\n".join(lines) + "\n"


def _is_large(offer: Offer, counted: int) -> bool:
    return offer.pairs is None or offer.pairs * 1000 > counted


def _cells(offer: Offer) -> tuple[str, ...]:
    pairs = UNKNOWN if offer.pairs is None else f"{offer.pairs:,}"
    place = (offer.corpus, offer.version, offer.noise)
    size = f"{offer.kilobytes / 1000:,.1f}"
    return (*place, pairs, size, " ".join(offer.files), licence_of(offer.corpus))


def _notes(first: Named, second: Named, found: list[Offer], shown: list[Offer]) -> Iterator[str]:
    if small := len(found) - len(shown):
        yield f"{small} more corpora have a thousandth of the pairs each, or less (--all)"
    yield "class: " + "; ".join(f"{name}: {NOISE[name]}" for name in _classes(shown))
    newer = [name for name, known in catalogue().items() if known.note.startswith("newer than")]
    yield f"OPUS as of {opus_date()} (newer: {', '.join(newer)})"
    others = [code for code in partners(first.code) if code != second.code]
    if second.code == PIVOT and others:
        yield f"with {len(others)} other languages too: ems corpora search {first.code} LANGUAGE"


def _classes(found: list[Offer]) -> list[str]:
    return [name for name in NOISE if any(offer.noise == name for offer in found)]
