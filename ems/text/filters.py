"""The filters of `clean`: which pairs go, or which sentences of documents, each counted by the name
of its setting in the report.

All are off unless an experiment sets them, since the papers name none; empty sides and evaluation
sentences always go (EMS v2 section IV-B). A pair is counted once, under its first reason: not
readable, empty sides, evaluation sentence, then the filters in the order of `Filters`.

Lengths are those of the tidy text, and a pair goes when either side is too short or too long. Words
are between spaces, which Chinese, Japanese and Thai have none of. The ratio is that of characters,
longer side by shorter: a Chinese sentence has a third of the characters of its English translation,
so a limit below 5 costs good pairs.

A sentence of a document is a row of one side: no side can equal it or be longer. `duplicates` means
whole documents there (ems.text.clean_documents).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, compress, islice
from pathlib import Path

from ems.base.batches import batched
from ems.config.text import CleanSettings
from ems.text.language import Identifier
from ems.text.normalise import Tidy, keys_function, tidy, tidy_lines, without_format
from ems.text.seen import Seen
from ems.text.tsv import Pair

DROP, ACROSS, SWAPPED = "drop", "across", "swapped"
OF_PAIRS = {"identical", "max_ratio", SWAPPED}  # reasons that documents do not have
EXAMPLES, SHOWN = 3, 80  # of rows removed for a reason, and their characters on a side
Test = Callable[..., bool]  # of the sides of a row: whether it goes


class Filters(CleanSettings):
    """The settings `clean`, and what they do; 0 is no limit."""

    def tests(self) -> dict[str, Test]:
        """Return the filters of single pairs that are on, by name, in their order."""
        tests: dict[str, Test] = {
            "max_bytes": lambda *sides: max(map(_bytes, sides)) > self.max_bytes,
            "identical": lambda first, *others: first in others,
            "min_characters": lambda *sides: min(map(len, sides)) < self.min_characters,
            "max_characters": lambda *sides: max(map(len, sides)) > self.max_characters,
            "min_words": lambda *sides: min(map(_words, sides)) < self.min_words,
            "max_words": lambda *sides: max(map(_words, sides)) > self.max_words,
            "max_ratio": lambda *sides: (
                max(map(len, sides)) > self.max_ratio * min(map(len, sides))
            ),
        }
        return {name: test for name, test in tests.items() if self.on(name)}

    def on(self, name: str) -> bool:
        """Return whether a filter removes or changes anything."""
        return getattr(self, name) not in (0, "keep", "error", None)

    def reasons(self) -> list[str]:
        """Return the names under which pairs are counted, those that are always there first."""
        return ["cap", "both_empty", "one_empty", "evaluation", *self._own()]

    def reasons_of_documents(self) -> list[str]:
        """Return the names under which sentences of documents are counted."""
        own = [name for name in self._own() if name not in OF_PAIRS]
        return ["cap", "empty", "evaluation", *own, "no_context"]

    def _own(self) -> list[str]:
        settings = ("undecodable", *self.tests(), "language", "duplicates", "similarity")
        own = [name for name in settings if self.on(name)]
        if self.language:
            own.insert(own.index("language"), SWAPPED)
        return [*own, *(Path(each.filter).name for each in self.commands)]


OFF = Filters()


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _words(text: str) -> int:
    return text.count(" ") + 1


@dataclass
class Report:
    """What happened to the pairs of one corpus, or the sentences: read = kept + sum of `removed`.

    `by_benchmark[set]` counts evaluation sentences per side ("en", "fr") and `pairs`, so a pair
    that two sets hold counts for both but once in `removed["evaluation"]`; `changed` counts the
    sides of which a filter took something away. `examples` are the first rows removed for each
    reason, for the log: (line, text).
    """

    read: int
    removed: Counter[str]
    by_benchmark: dict[str, Counter[str]]
    kept: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def remove(self, reason: str, count: int, rows: Iterable[tuple[int, str]]) -> None:
        """Count rows removed for a reason; the first of them are examples."""
        self.removed[reason] += count
        if count and len(examples := self.examples.setdefault(reason, [])) < EXAMPLES:
            examples += islice(rows, EXAMPLES - len(examples))


def clean_pairs(
    pairs: Iterable[Pair],
    sides: tuple[str, ...],
    keys: dict[str, tuple[str, ...]],
    key_name: str,
    report: Report,
    filters: Filters = OFF,
) -> Iterator[Pair]:
    """Yield the tidy rows that hold text on all sides, no evaluation sentence, and pass the
    filters.

    A row has a text for each of `sides` (two of a pair, one of a document) and its origin. `report`
    is filled in as they go by. A side that is None could not be read.
    """
    tidy_side, keys_of, tests = _tidier(filters, report), keys_function(key_name), filters.tests()
    seen = Seen(report.read - report.removed["cap"]) if filters.duplicates == DROP else None
    identifier = Identifier(sides, filters.language.threshold) if filters.language else None
    # row[-2] is the second side of a pair, and the only one of a sentence once more
    for batch in batched(pairs, lambda row: len(row[0] or "") + len(row[-2] or "")):
        if filters.undecodable == DROP:
            batch = _kept(batch, "undecodable", [None not in row for row in batch], report)
        *columns, origins = zip(*batch, strict=True) if batch else [()] * (len(sides) + 1)
        columns = [tidy_lines(list(column), tidy_side) for column in columns]
        batch = list(zip(*columns, origins, strict=True))
        if any("" in column for column in columns):
            batch = _with_text(batch, report)
        batch = _decontaminated(batch, sides, keys, keys_of, report)
        for name, test in tests.items():
            batch = _kept(batch, name, [not test(*row[:-1]) for row in batch], report)
        if identifier:
            batch = _in_language(batch, identifier, filters.language.swapped, report)
        if seen is not None:
            new = seen.add(["\t".join(row[:-1]) for row in batch])
            batch = _kept(batch, "duplicates", new, report)
        report.kept += len(batch)
        yield from batch


def _with_text(batch: list[Pair], report: Report) -> list[Pair]:
    """Return the rows with text on all sides."""
    single = len(batch[0]) == 2
    empty = "empty" if single else "both_empty"
    batch = _kept(batch, empty, [any(row[:-1]) for row in batch], report)
    return batch if single else _kept(batch, "one_empty", [all(row[:-1]) for row in batch], report)


def _in_language(
    batch: list[Pair], identifier: Identifier, swapped: str, report: Report
) -> list[Pair]:
    """Return the rows whose sides are in their languages, also those whose swapped sides are to be
    put in order.
    """
    others = identifier.others([row[:-1] for row in batch])
    turned = list(map(identifier.swapped, others))
    if swapped == DROP and any(turned):
        stays = [not turn for turn in turned]
        batch, others = _kept(batch, SWAPPED, stays, report), list(compress(others, stays))
    elif any(turned):
        report.changed[SWAPPED] += sum(turned)
        batch = [
            (row[1], row[0], row[2]) if turn else row
            for row, turn in zip(batch, turned, strict=True)
        ]
        others = [() if turn else each for turn, each in zip(turned, others, strict=True)]
    return _kept(batch, "language", [not any(each) for each in others], report)


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
    gone = (row for row, stay in zip(batch, stays, strict=True) if not stay)
    report.remove(reason, len(batch) - len(kept), map(shown, gone))
    return kept


def shown(row: Pair) -> tuple[int, str]:
    """Return the line and the text of a row, as an example of a reason."""
    *texts, origin = row  # a line; of documents (document, line)
    line = origin[-1] if isinstance(origin, tuple) else origin
    return line, " | ".join("?" if text is None else text[:SHOWN] for text in texts)


def _decontaminated(
    batch: list[Pair],
    sides: tuple[str, ...],
    keys: dict[str, tuple[str, ...]],
    keys_of: Callable[[list[str]], list[str]],
    report: Report,
) -> list[Pair]:
    """Return the pairs without an evaluation sentence."""
    columns = [keys_of([row[side] for row in batch]) for side in range(len(sides))]
    if all(map(keys.keys().isdisjoint, columns)):
        return batch
    hits = [tuple(keys.get(key, ()) for key in row) for row in zip(*columns, strict=True)]
    for row_hits in hits:
        if any(row_hits):
            _count_hits(report, sides, row_hits)
    return _kept(batch, "evaluation", [not any(row_hits) for row_hits in hits], report)


def _count_hits(report: Report, sides: tuple[str, ...], hits: tuple[tuple[str, ...], ...]) -> None:
    for name in set(chain.from_iterable(hits)):
        counts = report.by_benchmark.setdefault(name, Counter())
        counts["pairs"] += 1
        counts.update(side for side, names in zip(sides, hits, strict=True) if name in names)
