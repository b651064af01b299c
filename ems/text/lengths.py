"""Remove pairs whose lengths do not fit, by the ratio that the corpus itself has.

The log ratio is learned from the first pairs of the corpus and language pair, as median and median
deviation, which a fifth of noise hardly moves (docs/log.md, 2026-11-29).
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
STEADIEST = 0.15  # least deviation of the log ratio
ODD, SHORT = 6.0, 2.5  # deviations: of a wrong length, of a cut sentence
UNUSUAL = 0.3  # share of open ends in a language without final punctuation, such as Thai
STOPS, CLOSERS = tuple(".!?…。！？।॥۔؟։។"), "\"'”’»)]」』）›“ "


class LengthFilter:
    """The filters `length` and `truncated`, where `names` has them."""

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
            self._learn(list(chain.from_iterable(held))[:LEARNED])
        while held:  # frees each
            yield self._judged(held.pop(0), report)
        yield from (self._judged(batch, report) for batch in batches)

    def _learn(self, rows: RowBatch) -> None:
        ratios = _log_ratios(rows)
        self.middle = float(np.median(ratios))
        deviation = 1.4826 * float(np.median(np.abs(ratios - self.middle)))  # of a normal one
        self.deviation = max(deviation, STEADIEST)
        open_ends = [sum(_is_cut(row[side], row[1 - side]) for row in rows) for side in (0, 1)]
        self.closed = [count < UNUSUAL * len(rows) for count in open_ends]
        log.info("lengths: ratio %.2f, its logarithm ± %.2f", np.exp(self.middle), self.deviation)

    def _judged(self, batch: RowBatch, report: CleanReport) -> RowBatch:
        for reason in self.reasons:
            scores = ((_log_ratios(batch) - self.middle) / self.deviation).tolist()
            if reason == LENGTH:
                stays = [abs(score) <= ODD for score in scores]
            else:
                stays = [not self._is_short(*each) for each in zip(batch, scores, strict=True)]
            batch = report.keep(batch, reason, stays)
        return batch

    def _is_short(self, row: tuple[str, ...], score: float) -> bool:
        side = int(score < 0)  # the shorter one
        return abs(score) > SHORT and self.closed[side] and _is_cut(row[side], row[1 - side])


def _is_cut(side: str, other: str) -> bool:
    """Return whether a side ends in a word or number, and the other one in a full stop."""
    return unicodedata.category(side[-1])[0] in "LMN" and other.rstrip(CLOSERS).endswith(STOPS)


def _log_ratios(rows: RowBatch) -> np.ndarray:
    """Return the log ratio of the lengths, second to first side, float[n]."""
    first, second = (np.array([len(row[side]) + SHORTEST for row in rows]) for side in (0, 1))
    return np.log(second / first)
