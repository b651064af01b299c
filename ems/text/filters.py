"""The filters of `clean`: which pairs go, or which sentences of documents, each counted by the name
of its setting in the report.

All are off unless an experiment sets them, since the papers name none; empty sides and evaluation
sentences always go (EMS v2 section IV-B). A row is counted once, under its first reason. Lengths
are those of the tidy text, and a pair goes when either side is too short or too long. Words are
between spaces, which Chinese, Japanese and Thai have none of. The ratio is that of characters: a
Chinese sentence has a third of those of its English translation, so a limit below 5 costs good
pairs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain, compress, islice
from typing import Any

from ems.base.batches import batched
from ems.base.errors import EmsError
from ems.config.text import CleanSettings, LanguageFilter
from ems.text.normalise import KEYS, Keys, tidy, tidy_lines, without_format
from ems.text.tsv import Pair

DROP, SWAPPED = "drop", "swapped"
OFF = (0, "keep", "error", None)  # values of settings that do nothing
EXAMPLES, SHOWN = 3, 80  # of rows removed for a reason, and their characters on a side
RowBatch = list[Pair]  # some thousand rows: the text of each side, and the line or (document, line)


@dataclass
class CleanReport:
    """What happened to the pairs of one corpus, or the sentences: read = kept + sum of `removed`.

    `by_benchmark[set]` counts evaluation sentences per side ("en", "fr") and `pairs`; a pair that
    two sets hold counts for both. `changed` counts sides of which a filter took something away.
    `examples` are the first rows (line, text) removed for each reason.
    """

    read: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    by_benchmark: dict[str, Counter[str]] = field(default_factory=dict)
    kept: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """The rows that the cap has left."""
        return self.read - self.removed["cap"]

    def expect(self, reasons: Iterable[str]) -> None:
        """Show these reasons with a 0, if no row goes for them."""
        self.removed.update(dict.fromkeys(reasons, 0))

    def remove(self, reason: str, count: int, rows: Iterable[tuple[int, str]]) -> None:
        self.removed[reason] += count
        if count and len(examples := self.examples.setdefault(reason, [])) < EXAMPLES:
            examples += islice(rows, EXAMPLES - len(examples))

    def keep(self, batch: RowBatch, reason: str, stays: list[bool]) -> RowBatch:
        """Return the rows that stay, and count the others."""
        if all(stays):
            return batch
        kept = list(compress(batch, stays))

        def shown(row: Pair) -> tuple[int, str]:
            *texts, origin = row
            line = origin[-1] if isinstance(origin, tuple) else origin
            return line, " | ".join("?" if text is None else text[:SHOWN] for text in texts)

        gone = (shown(row) for row, stay in zip(batch, stays, strict=True) if not stay)
        self.remove(reason, len(batch) - len(kept), gone)
        return kept


@dataclass(frozen=True)
class Filter:
    """A step of cleaning, and the `reasons` under which it counts the rows that it removes."""

    reasons: tuple[str, ...]
    apply: Callable[[RowBatch, CleanReport], RowBatch]


def filtered(
    batches: Iterable[RowBatch], filters: Sequence[Filter], report: CleanReport
) -> Iterator[RowBatch]:
    """Yield the rows of each batch that all filters leave."""
    for batch in batches:
        for step in filters:
            batch = step.apply(batch, report) if batch else batch
        yield batch


def in_batches(rows: Iterable[Pair]) -> Iterator[RowBatch]:
    # A side may be None: not readable. row[-2] is the second side of a pair, or the only one again.
    return batched(rows, lambda row: len(row[0] or "") + len(row[-2] or ""))


def row_filters(
    settings: CleanSettings, languages: Sequence[str], known: Keys, key_name: str
) -> list[Filter]:
    """Return the filters that look at a row by itself, in their order. A row has a text for each of
    `languages`: two of a pair, one of a document. `known` are the keys of evaluation sentences.
    """
    empty = ("both_empty", "one_empty") if len(languages) > 1 else ("empty",)
    evaluation = partial(_without_evaluation, languages, known, KEYS[key_name])
    filters = [
        Filter((), partial(_tidied, settings.format_characters == DROP)),
        Filter(empty, partial(_without_empty, empty)),
        Filter(("evaluation",), evaluation),
        *_limits(settings),
    ]
    if settings.undecodable == DROP:
        filters.insert(0, _condition("undecodable", lambda *sides: None in sides))
    if settings.language:
        language = LanguageCheck(languages, settings.language)
        filters.append(Filter(language.reasons, language.apply))
    return filters


def _limits(settings: CleanSettings) -> list[Filter]:
    def size(text: str) -> int:
        return len(text) if text.isascii() else len(text.encode())

    def words(text: str) -> int:
        return text.count(" ") + 1

    tests: dict[str, Callable[..., bool]] = {
        "max_bytes": lambda *sides: max(map(size, sides)) > settings.max_bytes,
        "identical": lambda first, *others: first in others,
        "min_characters": lambda *sides: min(map(len, sides)) < settings.min_characters,
        "max_characters": lambda *sides: max(map(len, sides)) > settings.max_characters,
        "min_words": lambda *sides: min(map(words, sides)) < settings.min_words,
        "max_words": lambda *sides: max(map(words, sides)) > settings.max_words,
        "max_ratio": lambda *sides: (
            max(map(len, sides)) > settings.max_ratio * min(map(len, sides))
        ),
    }
    return [_condition(name, tests[name]) for name in tests if getattr(settings, name) not in OFF]


def _condition(name: str, goes: Callable[..., bool]) -> Filter:
    def apply(batch: RowBatch, report: CleanReport) -> RowBatch:
        return report.keep(batch, name, [not goes(*row[:-1]) for row in batch])

    return Filter((name,), apply)


def _tidied(drop_format: bool, batch: RowBatch, report: CleanReport) -> RowBatch:
    """Tidy all sides. With `drop_format` they lose format characters, counted."""

    def without_counted(text: str) -> str:
        kept = without_format(text)
        report.changed["format_characters"] += kept != text
        return tidy(kept)

    *sides, origins = zip(*batch, strict=True)
    tidied = [tidy_lines(list(side), without_counted if drop_format else tidy) for side in sides]
    return list(zip(*tidied, origins, strict=True))


def _without_empty(reasons: tuple[str, ...], batch: RowBatch, report: CleanReport) -> RowBatch:
    """Remove rows without text on all sides, then those without text on one."""
    if all(map(all, batch)):
        return batch
    for reason, enough in zip(reasons, (any, all), strict=False):
        batch = report.keep(batch, reason, [enough(row[:-1]) for row in batch])
    return batch


def _without_evaluation(
    languages: Sequence[str],
    known: Keys,
    keys_of: Callable[[list[str]], list[str]],
    batch: RowBatch,
    report: CleanReport,
) -> RowBatch:
    """Remove rows with a side whose key is one of an evaluation sentence; count the sets of it."""
    columns = [keys_of([row[side] for row in batch]) for side in range(len(languages))]
    if all(map(known.keys().isdisjoint, columns)):
        return batch
    sets = [tuple(known.get(key, ()) for key in keys) for keys in zip(*columns, strict=True)]
    for row in filter(any, sets):
        for name in set(chain.from_iterable(row)):
            counts = report.by_benchmark.setdefault(name, Counter())
            counts["pairs"] += 1
            sides = zip(languages, row, strict=True)
            counts.update(language for language, names in sides if name in names)
    return report.keep(batch, "evaluation", [not any(each) for each in sets])


# --- language

PACKAGE = "py3langid"  # Lui and Baldwin (ACL 2012 demos), retrained; compared in docs/log.md
CODES = {"nb": "no"}  # of ours -> of the package
NO_LANGUAGE = "zxx"  # numbers, markup, addresses
# ISO 639-3, of the package's codes: not told apart, since short sentences often fit several
MACROLANGUAGES = ("bs hr sr", "id ms", "nn no", "wuu yue zh", "ar ary arz", "ku sdh", "ltg lv")


def check_installed() -> None:
    """Raise `EmsError` when the package is not installed."""
    if find_spec(PACKAGE) is None:
        raise EmsError(
            f"clean.language: the package {PACKAGE} is not installed; `pip install -e .[lid]`, or "
            "leave clean.language out"
        )


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def unknown(languages: Iterable[str]) -> list[str]:
    """Return the languages that the package does not know."""
    known = set(_identifier().labels)
    return [code for code in languages if CODES.get(code, code) not in known]


def _alike(code: str) -> list[str]:
    """Return the package's codes of a language and of those that are not told apart from it."""
    code = CODES.get(code, code)
    return next((group for group in map(str.split, MACROLANGUAGES) if code in group), [code])


class LanguageCheck:
    """Removes the rows with a side in another language than that of its column. A pair whose sides
    are each in the language of the other goes, too, or is turned round.
    """

    def __init__(self, languages: Sequence[str], settings: LanguageFilter) -> None:
        check_installed()
        self.reasons = (SWAPPED, "language") if len(languages) > 1 else ("language",)
        self.settings, missing = settings, unknown(languages)
        self.own = [None if code in missing else _alike(code) for code in languages]

    def apply(self, batch: RowBatch, report: CleanReport) -> RowBatch:
        others = self.others([row[:-1] for row in batch])
        swapped = list(map(self.swapped, others))
        if any(swapped) and self.settings.swapped == DROP:
            stays = [not each for each in swapped]
            batch = report.keep(batch, SWAPPED, stays)
            others = list(compress(others, stays))
        elif any(swapped):
            report.changed[SWAPPED] += sum(swapped)
            turns = list(zip(batch, others, swapped, strict=True))
            batch = [(row[1], row[0], row[2]) if turn else row for row, _, turn in turns]
            others = [() if turn else each for _, each, turn in turns]
        return report.keep(batch, "language", [not any(each) for each in others])

    def others(self, rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """Return the other language that each side of each row is in, "" for its own."""

        def other(text: str, own: list[str] | None) -> str:
            if own is None:
                return ""
            language, probability = _identifier().classify(text)
            same = language in own or language == NO_LANGUAGE
            return "" if same or probability < self.settings.threshold else language

        return [tuple(map(other, row, self.own)) for row in rows]

    def swapped(self, others: tuple[str, ...]) -> bool:
        """Return whether each side of a pair is in the language of the other side."""
        return all(others) and all(
            own and other in own for other, own in zip(others, reversed(self.own), strict=True)
        )
