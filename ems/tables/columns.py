"""Columns and words that tables of systems share: one per language, means, blocks, counts."""

from collections.abc import Callable, Container, Iterable, Sequence

from ems.bench.scores import ENGLISH, Score, ScoreFile
from ems.tables.engine import Column, Models
from ems.tables.printed import AVERAGE
from ems.tables.scores import Scores

Order = Callable[[set[str]], list[str]]
BEST = "Bold: best of our systems."
BOTH_WAYS = "P@1 in percent, mean of both directions"


def labels_of(systems: Iterable[Scores]) -> set[str]:
    """Return all labels that some systems have scores of."""
    return {label for system in systems for label in system.values}


def one_each(systems: Sequence[Scores], order: Order, models: Models | None = None) -> list[Column]:
    """Return a column for each label, and their mean."""
    labels = order(labels_of(systems))
    return [*(Column(label, [label], label) for label in labels), average(labels, models)]


def average(labels: Sequence[str], models: Models | None = None) -> Column:
    """Return the mean over labels; a part of the paper's where its rows have others."""
    printed = {name for values in (models or {}).values() for name in values}
    part = bool(models) and set(labels) != printed - {AVERAGE, f"{ENGLISH}-{ENGLISH}"}
    return Column(AVERAGE, labels, AVERAGE, part)


def part_of(heading: str, paper: Sequence[str], scored: Container[str]) -> Column:
    """Return the mean over those members of a paper's column that were scored, n/m where some were
    not.
    """
    members = [name for name in paper if name in scored]
    if len(members) == len(paper):
        return Column(heading, members, heading)
    name = heading.partition(" (")[0].removesuffix(" Avg.")
    return Column(f"{name} {len(members)}/{len(paper)}", members, heading, part=True)


def span(numbers: Iterable[int]) -> str:
    """Return the range of some numbers: "1,000", or "99 to 1,000"."""
    numbers = set(numbers)
    return " to ".join(f"{end:,}" for end in sorted({min(numbers), max(numbers)}))


def counted(systems: Iterable[Scores]) -> str:
    """Return the range of the numbers of sentences."""
    return span(count for system in systems for count in system.counts.values())


def direction(query: str, candidates: str) -> str:
    """Return the name of the search for sentences of one language among those of another."""
    return f"{query}-{candidates}"


def language_direction(file: ScoreFile, row: Score) -> str:
    """Return a direction between languages of the experiment: "de-fr"."""
    return direction(file.languages[row.source], file.languages[row.target])
