"""Remove pairs whose lengths do not fit, by the ratio that the corpus itself has.

The log ratio of the lengths is learned from the first pairs of the corpus and language pair, as
median and median deviation, which a fifth of noise does not move; its distribution differs between
language pairs, so that no constant fits (docs/log.md, 2026-11-29).
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from ems.base.progress import log
from ems.text.filters import CleanReport, RowBatch

LENGTH, TRUNCATED = "length", "truncated"
LEARNED, HELD = 100_000, 1 << 25  # pairs to learn from, or characters, which wait in memory
FEWEST = 200  # pairs that suffice to learn from; of fewer, none is removed
SHORTEST = 10  # characters added to each side: short sentences vary more
STEADIEST = 0.15  # smallest deviation of the log ratio that is believed
ODD, SHORT = 6.0, 2.5  # deviations: of a wrong length, of a cut sentence
UNUSUAL = 0.3  # share of open sides above which a language has no final punctuation, as in Thai
STOPS = ".!?…。！？।॥۔؟։።።៕။"
CLOSERS = "\"'”’»)]」』）›“ "


class LengthFilter:
    """The filters `length` and `truncated`, those of them that are in `reasons`."""

    def __init__(self, names: Sequence[str]) -> None:
        self.reasons = [name for name in (LENGTH, TRUNCATED) if name in names]
        self.middle, self.deviation, self.closed = 0.0, np.inf, [False, False]

    def apply(self, batches: Iterable[RowBatch], report: CleanReport) -> Iterator[RowBatch]:
        """Yield the pairs that stay; the first ones wait until the ratio is learned."""
        held, pairs, characters, batches = list[RowBatch](), 0, 0, iter(batches)
        for batch in batches:
            held.append(batch)
            pairs += len(batch)
            characters += sum(len(row[0]) + len(row[1]) for row in batch)
            if pairs >= LEARNED or characters >= HELD:
                break
        if pairs >= FEWEST:
            self._learn(list(chain.from_iterable(held)))
        elif pairs:
            log.info("lengths: %s pairs are too few to learn a ratio from; all stay", pairs)
        while held:
            yield self._judged(held.pop(0), report)
        for batch in batches:
            yield self._judged(batch, report)

    def _learn(self, rows: RowBatch) -> None:
        ratios = _log_ratios(rows)
        self.middle = float(np.median(ratios))
        deviation = 1.4826 * float(np.median(np.abs(ratios - self.middle)))  # of a normal one
        self.deviation = max(deviation, STEADIEST)
        open_sides = [[is_cut(row[side], row[1 - side]) for row in rows] for side in (0, 1)]
        self.closed = [sum(side) < UNUSUAL * len(rows) for side in open_sides]
        ratio = float(np.exp(self.middle))
        log.info("lengths: ratio %.2f, deviation of its logarithm %.2f", ratio, self.deviation)

    def _judged(self, batch: RowBatch, report: CleanReport) -> RowBatch:
        if LENGTH in self.reasons and batch:
            odd = np.abs(_log_ratios(batch) - self.middle) > ODD * self.deviation
            batch = report.keep(batch, LENGTH, (~odd).tolist())
        if TRUNCATED in self.reasons and batch:
            scores = (_log_ratios(batch) - self.middle) / self.deviation
            batch = report.keep(batch, TRUNCATED, list(map(self._is_whole, batch, scores.tolist())))
        return batch

    def _is_whole(self, row: tuple[str, ...], score: float) -> bool:
        side = int(score < 0)  # the shorter one
        cut = abs(score) > SHORT and self.closed[side]
        return not (cut and is_cut(row[side], row[1 - side]))


def is_cut(side: str, other: str) -> bool:
    """Return whether a side ends in a word or number, where the other ends in a full stop."""
    ends_in_word = unicodedata.category(side[-1:] or " ")[0] in "LMN"
    return ends_in_word and other.rstrip(CLOSERS).endswith(tuple(STOPS))


def _log_ratios(rows: RowBatch) -> np.ndarray:
    """Return the logarithm of the ratio of second to first side of each row, float[n]."""
    lengths = np.array([[len(row[0]), len(row[1])] for row in rows], float) + SHORTEST
    return np.log(lengths[:, 1] / lengths[:, 0])
