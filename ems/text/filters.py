"""The filters of `clean`, which remove pairs or sentences of documents.

The report counts each removed row once, under the setting that removed it first. All filters are
off by default, since the papers name none, except that empty sides and evaluation sentences are
always removed (EMS v2 section IV-B). Lengths are measured on tidy text, and a pair is removed if
either side is too short or too long. Words are separated by spaces, so the limits on words do not
work for Chinese, Japanese and Thai. The ratio counts characters: a Chinese sentence has a third as
many as its English translation, so a limit below 5 removes good pairs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, compress, islice

from ems.base.texts import INVISIBLE, batched, is_visible
from ems.config.text import CleanSettings, LanguageFilter
from ems.corpora.identifier import NO_LANGUAGE, alike, identifier
from ems.text.keys import KEYS, Keys
from ems.text.normalise import tidy, tidy_lines, without_format
from ems.text.pair_filters import pair_tests
from ems.text.repairs.base import Repairer, RepairReport, repairer
from ems.text.tsv import Pair

DROP, SWAPPED = "drop", "swapped"
OFF = (0, "keep", "error", None)  # setting values that turn a filter off
EXAMPLES, SHOWN = 3, 80  # examples per reason, characters shown per side
RowBatch = list[Pair]  # rows: the text of each side, and the line or (document, line)
Batches = Iterable[RowBatch]


@dataclass
class CleanReport:
    """Counts of the pairs or sentences of one corpus: read = kept + sum of `removed`.

    `by_benchmark[set]` counts evaluation sentences per side ("en", "fr") and `pairs`; a pair found
    in two sets counts for both. `changed` counts sides that a filter altered. `examples` are the
    first rows (line, text) removed for each reason. `repairs` has the changes of each repair.
    """

    read: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    by_benchmark: dict[str, Counter[str]] = field(default_factory=dict)
    kept: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    repairs: RepairReport | None = None

    @property
    def left(self) -> int:
        """Number of rows after the cap."""
        return self.read - self.removed["cap"]

    def expect(self, reasons: Iterable[str]) -> None:
        """List these reasons with a count of 0 unless they have one."""
        self.removed.update(dict.fromkeys(reasons, 0))

    def remove(self, reason: str, count: int, rows: Iterable[tuple[int, str]]) -> None:
        self.removed[reason] += count
        if count and len(examples := self.examples.setdefault(reason, [])) < EXAMPLES:
            examples += islice(rows, EXAMPLES - len(examples))

    def keep(self, batch: RowBatch, reason: str, stays: list[bool]) -> RowBatch:
        """Return the rows whose `stays` is true; count the others under `reason`."""
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


Apply = Callable[[RowBatch, CleanReport], RowBatch]


@dataclass(frozen=True)
class Filter:
    """A cleaning step, and the `reasons` under which it counts removed rows."""

    reasons: tuple[str, ...]
    apply: Apply


def filtered(
    batches: Batches, filters: Sequence[Filter], report: CleanReport
) -> Iterator[RowBatch]:
    for batch in batches:
        for step in filters:
            batch = step.apply(batch, report) if batch else batch
        yield batch


def in_batches(rows: Iterable[Pair]) -> Iterator[RowBatch]:
    # a side that cannot be decoded is None; row[-2] is the last side of a pair or document
    return batched(rows, lambda row: len(row[0] or "") + len(row[-2] or ""))


def row_filters(
    settings: CleanSettings, languages: Sequence[str], eval_keys: Keys | None, key_name: str
) -> list[Filter]:
    """Return the filters of one row at a time, in order; a row has one text per language. Without
    `eval_keys`, there is no filter of evaluation sentences.
    """
    tests = pair_tests(languages, settings.pair_filters)
    empty = ("both_empty", "one_empty") if len(languages) > 1 else ("empty",)
    filters = [
        Filter((), partial(_tidied, settings.format_characters == DROP)),
        Filter(empty, partial(_without_empty, empty)),
        *_limits(settings),
        *(_condition(name, test) for name, test in tests.items()),
    ]
    evaluation = partial(_without_evaluation, languages, eval_keys or {}, key_name)
    if eval_keys is not None:
        filters.insert(2, Filter(("evaluation",), evaluation))
    if settings.repairs not in ("none", []):
        names = settings.repairs if settings.repairs == "default" else tuple(settings.repairs)
        repair = partial(_repaired, repairer(names, tuple(languages)), evaluation)
        filters.insert(0, Filter((), repair))
    if settings.undecodable == DROP:
        filters.insert(0, _condition("undecodable", lambda *sides: None in sides))
    if settings.language:
        language = LanguageCheck(languages, settings.language)
        filters.append(Filter(language.reasons, language.apply))
    return filters


def _limits(settings: CleanSettings) -> list[Filter]:
    ratio, least, most = settings.max_ratio, settings.min_words, settings.max_words
    tests: dict[str, Callable[..., bool]] = {
        "max_bytes": lambda *sides: max(map(len, map(str.encode, sides))) > settings.max_bytes,
        "identical": lambda first, *others: first in others,
        "min_characters": lambda *sides: min(map(len, sides)) < settings.min_characters,
        "max_characters": lambda *sides: max(map(len, sides)) > settings.max_characters,
        "min_words": lambda *sides: min(side.count(" ") + 1 for side in sides) < least,
        "max_words": lambda *sides: max(side.count(" ") + 1 for side in sides) > most,
        "max_ratio": lambda *sides: max(map(len, sides)) > ratio * min(map(len, sides)),
    }
    return [_condition(name, tests[name]) for name in tests if getattr(settings, name) not in OFF]


def _condition(name: str, removes: Callable[..., bool]) -> Filter:
    def apply(batch: RowBatch, report: CleanReport) -> RowBatch:
        return report.keep(batch, name, [not removes(*row[:-1]) for row in batch])

    return Filter((name,), apply)


def _repaired(repair: Repairer, known: Apply, batch: RowBatch, report: CleanReport) -> RowBatch:
    """Repair all sides before they are tidied, which loses control characters that mojibake needs.
    Rows that equal an evaluation sentence before their repair are removed (`known`), too.
    """
    report.repairs = report.repairs or RepairReport(report.changed)
    repaired = repair(batch, report.repairs)
    altered = [old for old, new in zip(batch, repaired, strict=True) if old is not new]
    gone = {row[-1] for row in altered} - {row[-1] for row in known(altered, report)}
    return [row for row in repaired if row[-1] not in gone] if gone else repaired


def _tidied(drop_format: bool, batch: RowBatch, report: CleanReport) -> RowBatch:
    """Tidy all sides; with `drop_format`, remove format characters and count the sides."""

    def without_counted(text: str) -> str:
        kept = without_format(text)
        report.changed["format_characters"] += kept != text
        return tidy(kept)

    *sides, origins = zip(*batch, strict=True)
    tidied = [tidy_lines(list(side), without_counted if drop_format else tidy) for side in sides]
    texts = [[t if t[:1] not in INVISIBLE or is_visible(t) else "" for t in s] for s in tidied]
    return list(zip(*texts, origins, strict=True))


def _without_empty(reasons: tuple[str, ...], batch: RowBatch, report: CleanReport) -> RowBatch:
    """Remove rows without text on any side, then rows without text on one side."""
    if all(map(all, batch)):
        return batch
    for reason, enough in zip(reasons, (any, all), strict=False):
        batch = report.keep(batch, reason, [enough(row[:-1]) for row in batch])
    return batch


def _without_evaluation(
    languages: Sequence[str], eval_keys: Keys, key_name: str, batch: RowBatch, report: CleanReport
) -> RowBatch:
    """Remove rows with an evaluation sentence on either side; count them per evaluation set."""
    if not eval_keys:
        return batch
    texts = ([row[side] for row in batch] for side in range(len(languages)))
    found = [list(map(eval_keys.get, KEYS[key_name](side))) for side in texts]
    if not any(map(any, found)):
        return batch
    sets = list(zip(*found, strict=True))  # of each row: the sets of each side, or None
    for row in filter(any, sets):
        for name in set(chain.from_iterable(filter(None, row))):
            counts = report.by_benchmark.setdefault(name, Counter())
            counts["pairs"] += 1
            pairs = zip(languages, row, strict=True)
            counts.update(language for language, names in pairs if names and name in names)
    return report.keep(batch, "evaluation", [not any(each) for each in sets])


# --- language


class LanguageCheck:
    """Removes rows with a side in another language; removes or swaps pairs that are swapped."""

    def __init__(self, languages: Sequence[str], settings: LanguageFilter) -> None:
        self.reasons = (SWAPPED, "language") if len(languages) > 1 else ("language",)
        self.settings, self.own = settings, [alike(code) for code in languages]

    def apply(self, batch: RowBatch, report: CleanReport) -> RowBatch:
        others = self.others([row[:-1] for row in batch])
        # both sides are in each other's language
        sides = [zip(row, reversed(self.own), strict=True) for row in others]
        swapped = [all(other in own for other, own in row) for row in sides]
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
        """Return the detected language of each side of each row; "" if it is the right one."""

        def other(text: str, own: tuple[str, ...]) -> str:
            if not own:
                return ""
            language, probability = identifier().classify(text)
            same = language in own or language == NO_LANGUAGE
            return "" if same or probability < self.settings.threshold else language

        return [tuple(map(other, row, self.own)) for row in rows]
