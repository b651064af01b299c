"""Columns and words that tables of systems share: one per language, means, blocks, counts."""

from collections.abc import Callable, Iterable, Sequence

from ems.scores import ENGLISH, Score, ScoreFile
from ems.tables.engine import Column, Models, headings
from ems.tables.printed import AVERAGE
from ems.tables.scores import Scores
from ems.tables.table import Block, balanced_blocks

Order = Callable[[set[str]], list[str]]
BEST = "Bold: best of our systems."
BOTH_WAYS = "P@1 in percent, mean of both directions"


def labels_of(systems: Iterable[Scores]) -> set[str]:
    """All labels that some systems have scores of."""
    return {label for system in systems for label in system.values}


def one_each(systems: Sequence[Scores], order: Order, models: Models | None = None) -> list[Column]:
    """A column for each label, and their mean."""
    labels = order(labels_of(systems))
    return [*(Column(label, [label], label) for label in labels), average(labels, models)]


def average(labels: Sequence[str], models: Models | None = None) -> Column:
    """The mean over labels; a part of the paper's where its rows have others."""
    printed = {name for values in (models or {}).values() for name in values}
    part = bool(models) and set(labels) != printed - {AVERAGE, f"{ENGLISH}-{ENGLISH}"}
    return Column(AVERAGE, labels, AVERAGE, part)


def groups_beside(columns: list[Column], first: int) -> list[Block]:
    """Columns in blocks of like size; those from `first` on share one, with wide headings."""
    names = headings(columns)
    wide = [Block(names[first:], spread=True)] if names[first:] else []
    return [*balanced_blocks(names[:first]), *wide]


def counted(systems: Iterable[Scores]) -> str:
    """The numbers of sentences: "1,000", or "99 to 1,000"."""
    counts = {count for system in systems for count in system.counts.values()}
    least, most = min(counts), max(counts)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def direction(query: str, candidates: str) -> str:
    """The name of the search for sentences of one language among those of another."""
    return f"{query}-{candidates}"


def language_direction(file: ScoreFile, row: Score) -> str:
    """A direction between languages of the experiment: "de-fr"."""
    return direction(file.languages[row.source], file.languages[row.target])
