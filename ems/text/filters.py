"""The filters of `clean`: which pairs go, each counted by the name of its setting in the report.

All are off unless an experiment sets them, since the papers name none of them; empty sides and
evaluation sentences go always (EMS v2 section IV-B).

Notable choices:
- a pair is counted once, under the first reason that it has: what could not be read, empty sides,
  evaluation sentences, then the filters in the order of `Filters`. So the counts of
  decontamination do not depend on the filters;
- lengths are those of the tidy text: characters, words between spaces (of little use for Chinese,
  Japanese or Thai), UTF-8 bytes. A pair goes when either side is too short or too long;
- the ratio is that of the characters, longer side by shorter. A Chinese sentence has about a third
  of the characters of its English translation, so a limit below 5 costs good pairs there;
- pairs come in batches: what most pairs pass is asked of a whole batch at once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ems.batches import batched
from ems.text.normalise import Tidy, keys_function, tidier, tidy, tidy_lines, without_format
from ems.text.seen import Seen
from ems.text.settings import CleanSettings
from ems.text.tsv import Pair

DROP = "drop"
Test = Callable[[str, str], bool]  # whether a pair goes


class Filters(CleanSettings):
    """The settings `clean`, and what they do; 0 is no limit."""

    def tests(self) -> dict[str, Test]:
        """The filters of single pairs that are on, by name, in their order."""
        every: dict[str, Test] = {
            "max_bytes": lambda a, b: max(_bytes(a), _bytes(b)) > self.max_bytes,
            "identical": lambda a, b: a == b,
            "min_characters": lambda a, b: min(len(a), len(b)) < self.min_characters,
            "max_characters": lambda a, b: max(len(a), len(b)) > self.max_characters,
            "min_words": lambda a, b: min(_words(a), _words(b)) < self.min_words,
            "max_words": lambda a, b: max(_words(a), _words(b)) > self.max_words,
            "max_ratio": lambda a, b: max(len(a), len(b)) > self.max_ratio * min(len(a), len(b)),
        }
        return {name: test for name, test in every.items() if self.on(name)}

    def on(self, name: str) -> bool:
        """Whether a filter removes or changes anything."""
        return getattr(self, name) not in (0, "keep", "error")

    def reasons(self) -> list[str]:
        """The names under which pairs are counted, those that are always there first."""
        own = ["undecodable", *self.tests(), "duplicates"]
        always = ["cap", "both_empty", "one_empty", "evaluation"]
        return [*always, *(name for name in own if self.on(name))]


OFF = Filters()


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _words(text: str) -> int:
    return text.count(" ") + 1


def _length(pair: tuple[str | None, str | None, int]) -> int:
    return len(pair[0] or "") + len(pair[1] or "")


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
    for batch in batched(pairs, _length):
        if filters.undecodable == DROP:
            batch = _readable(batch, report)
        firsts = tidy_lines([pair[0] for pair in batch], tidy_side)
        seconds = tidy_lines([pair[1] for pair in batch], tidy_side)
        batch = list(zip(firsts, seconds, [pair[2] for pair in batch], strict=True))
        if "" in firsts or "" in seconds:
            batch = _with_text(batch, report)
        batch = _unknown(batch, sides, keys, keys_of, report)
        for name, test in tests.items():
            batch = _left(batch, name, [not test(a, b) for a, b, _ in batch], report)
        if seen is not None:
            new = seen.add([f"{first}\t{second}" for first, second, _ in batch])
            batch = _left(batch, "duplicates", new, report)
        report.kept += len(batch)
        yield from batch


def _tidier(filters: Filters, report: Report) -> Tidy:
    """How a side is tidied, and counted when that takes format characters away."""
    if filters.format_characters != DROP:
        return tidier(filters.format_characters)

    def counted(text: str) -> str:
        kept = without_format(text)
        report.changed["format_characters"] += kept != text
        return tidy(kept)

    return counted


def _left(batch: list[Pair], reason: str, stays: list[bool], report: Report) -> list[Pair]:
    """The pairs that stay; the others are counted."""
    left = [pair for pair, stay in zip(batch, stays, strict=True) if stay]
    report.removed[reason] += len(batch) - len(left)
    return left


def _readable(batch: list[Pair], report: Report) -> list[Pair]:
    stays = [first is not None and second is not None for first, second, _ in batch]
    return _left(batch, "undecodable", stays, report)


def _with_text(batch: list[Pair], report: Report) -> list[Pair]:
    batch = _left(batch, "both_empty", [bool(a or b) for a, b, _ in batch], report)
    return _left(batch, "one_empty", [bool(a and b) for a, b, _ in batch], report)


def _unknown(
    batch: list[Pair],
    sides: tuple[str, str],
    keys: dict[str, tuple[str, ...]],
    keys_of: Callable[[list[str]], list[str]],
    report: Report,
) -> list[Pair]:
    """The pairs without an evaluation sentence."""
    found = [keys_of([pair[at] for pair in batch]) for at in (0, 1)]
    if keys.keys().isdisjoint(found[0]) and keys.keys().isdisjoint(found[1]):
        return batch
    hits = [
        [keys.get(first, ()), keys.get(second, ())] for first, second in zip(*found, strict=True)
    ]
    for pair_hits in hits:
        if pair_hits[0] or pair_hits[1]:
            _count_hits(report, sides, pair_hits)
    return _left(batch, "evaluation", [not (one or other) for one, other in hits], report)


def _count_hits(report: Report, sides: tuple[str, str], hits: list[tuple[str, ...]]) -> None:
    for name in {*hits[0], *hits[1]}:
        counts = report.by_benchmark.setdefault(name, Counter())
        counts["pairs"] += 1
        counts.update(side for side, names in zip(sides, hits, strict=True) if name in names)
