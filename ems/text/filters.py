"""The filters of `clean`: which pairs go, each counted by the name of its setting in the report.

All are off unless an experiment sets them, since the papers name none; empty sides and evaluation
sentences always go (EMS v2 section IV-B). A pair is counted once, under its first reason: not
readable, empty sides, evaluation sentence, then the filters in the order of `Filters`.

Lengths are those of the tidy text, and a pair goes when either side is too short or too long. Words
are between spaces, which Chinese, Japanese and Thai have none of. The ratio is that of characters,
longer side by shorter: a Chinese sentence has a third of the characters of its English translation,
so a limit below 5 costs good pairs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import compress

from ems.batches import batched
from ems.text.normalise import Tidy, keys_function, tidy, tidy_lines, without_format
from ems.text.seen import Seen
from ems.text.settings import CleanSettings
from ems.text.tsv import Pair

DROP = "drop"
Test = Callable[[str, str], bool]  # whether a pair goes


class Filters(CleanSettings):
    """The settings `clean`, and what they do; 0 is no limit."""

    def tests(self) -> dict[str, Test]:
        """Return the filters of single pairs that are on, by name, in their order."""
        tests: dict[str, Test] = {
            "max_bytes": lambda a, b: max(_bytes(a), _bytes(b)) > self.max_bytes,
            "identical": lambda a, b: a == b,
            "min_characters": lambda a, b: min(len(a), len(b)) < self.min_characters,
            "max_characters": lambda a, b: max(len(a), len(b)) > self.max_characters,
            "min_words": lambda a, b: min(_words(a), _words(b)) < self.min_words,
            "max_words": lambda a, b: max(_words(a), _words(b)) > self.max_words,
            "max_ratio": lambda a, b: max(len(a), len(b)) > self.max_ratio * min(len(a), len(b)),
        }
        return {name: test for name, test in tests.items() if self.on(name)}

    def on(self, name: str) -> bool:
        """Return whether a filter removes or changes anything."""
        return getattr(self, name) not in (0, "keep", "error")

    def reasons(self) -> list[str]:
        """Return the names under which pairs are counted, those that are always there first."""
        own = [name for name in ("undecodable", *self.tests(), "duplicates") if self.on(name)]
        return ["cap", "both_empty", "one_empty", "evaluation", *own]


OFF = Filters()


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _words(text: str) -> int:
    return text.count(" ") + 1


@dataclass
class Report:
    """What happened to the pairs of one corpus: read = kept + sum of `removed`.

    `by_benchmark[set]` counts evaluation sentences per side ("en", "fr") and `pairs`, so a pair
    that two sets hold counts for both but once in `removed["evaluation"]`; `changed` counts the
    sides of which a filter took something away.
    """

    read: int
    removed: Counter[str]
    by_benchmark: dict[str, Counter[str]]
    kept: int = 0
    changed: Counter[str] = field(default_factory=Counter)


def clean_pairs(
    pairs: Iterable[Pair],
    sides: tuple[str, str],
    keys: dict[str, tuple[str, ...]],
    key_name: str,
    report: Report,
    filters: Filters = OFF,
) -> Iterator[Pair]:
    """Yield the tidy pairs that hold text on both sides, no evaluation sentence, and pass the
    filters.

    `report` is filled in as the pairs go by. A side that is None could not be read.
    """
    tidy_side, keys_of, tests = _tidier(filters, report), keys_function(key_name), filters.tests()
    seen = Seen(report.read - report.removed["cap"]) if filters.duplicates == DROP else None
    for batch in batched(pairs, lambda pair: len(pair[0] or "") + len(pair[1] or "")):
        if filters.undecodable == DROP:
            stays = [first is not None and second is not None for first, second, _ in batch]
            batch = _kept(batch, "undecodable", stays, report)
        firsts = tidy_lines([pair[0] for pair in batch], tidy_side)
        seconds = tidy_lines([pair[1] for pair in batch], tidy_side)
        batch = list(zip(firsts, seconds, [pair[2] for pair in batch], strict=True))
        if "" in firsts or "" in seconds:
            batch = _kept(batch, "both_empty", [bool(a or b) for a, b, _ in batch], report)
            batch = _kept(batch, "one_empty", [bool(a and b) for a, b, _ in batch], report)
        batch = _decontaminated(batch, sides, keys, keys_of, report)
        for name, test in tests.items():
            batch = _kept(batch, name, [not test(a, b) for a, b, _ in batch], report)
        if seen is not None:
            new = seen.add([f"{first}\t{second}" for first, second, _ in batch])
            batch = _kept(batch, "duplicates", new, report)
        report.kept += len(batch)
        yield from batch


def _tidier(filters: Filters, report: Report) -> Tidy:
    """Return the function that tidies a side; it counts those that lose format characters."""
    if filters.format_characters != DROP:
        return tidy

    def counted(text: str) -> str:
        kept = without_format(text)
        report.changed["format_characters"] += kept != text
        return tidy(kept)

    return counted


def _kept(batch: list[Pair], reason: str, stays: list[bool], report: Report) -> list[Pair]:
    """Return the pairs that stay, and count the others."""
    kept = list(compress(batch, stays))
    report.removed[reason] += len(batch) - len(kept)
    return kept


def _decontaminated(
    batch: list[Pair],
    sides: tuple[str, str],
    keys: dict[str, tuple[str, ...]],
    keys_of: Callable[[list[str]], list[str]],
    report: Report,
) -> list[Pair]:
    """Return the pairs without an evaluation sentence."""
    firsts, seconds = (keys_of([pair[side] for pair in batch]) for side in (0, 1))
    if keys.keys().isdisjoint(firsts) and keys.keys().isdisjoint(seconds):
        return batch
    hits = [(keys.get(a, ()), keys.get(b, ())) for a, b in zip(firsts, seconds, strict=True)]
    for pair_hits in hits:
        if pair_hits != ((), ()):
            _count_hits(report, sides, pair_hits)
    return _kept(batch, "evaluation", [not (one or other) for one, other in hits], report)


def _count_hits(
    report: Report, sides: tuple[str, str], hits: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    for name in {*hits[0], *hits[1]}:
        counts = report.by_benchmark.setdefault(name, Counter())
        counts["pairs"] += 1
        counts.update(side for side, names in zip(sides, hits, strict=True) if name in names)
