"""Align the sentences of two documents by dynamic programming over vectors, in linear time.

The m:n alignments of a document minimise the sum of

    (m + n) / 2 * distance + LENGTH * sqrt(length) * |ratio| - BONUS

and SKIP for each sentence without a partner. `distance` is 1 - cosine of both sides, relative to
its mean over all sentences of the other document (Thompson and Koehn, EMNLP 2019,
doi 10.18653/v1/D19-1136; over all of them, not a sample). `ratio` is the logarithm of the ratio of
letters on both sides to the ratio of all aligned text, and `length` the letters of both sides, in
mean sentences: the deviation grows with the square root of the length (Gale and Church 1993). BONUS
rewards each alignment, so pairs that can be split are split. docs/align.md compares alternatives.

Documents are first aligned at half, a quarter, ... of their sentences; each finer level searches
near the path of the one before. A static model gives adjacent sentences exactly the vector of their
joined text, from the sums of their words.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ems.base.progress import Progress
from ems.base.texts import is_visible
from ems.model.lines import unit_rows
from ems.use.arguments import lines_of, whole
from ems.use.encoder import Encoder, cosines

LENGTH, BONUS, SKIP = 0.65, 0.65, 0.38  # chosen on one development document and made ones
LARGEST = 8  # sentences of an alignment, on both sides together
DENSE = 256  # sentences, or groups, of a side that are compared with all of the other side
COARSE = 3  # largest alignment of groups of sentences
NEAR = 20  # rows and columns around the coarser path that are searched
SMOOTH = 3  # letters that are added to both sides of a ratio
EPSILON = 1e-3  # least mean distance
CELLS = 1 << 14  # of a block whose costs are computed at once


class Alignment(NamedTuple):
    """Adjacent lines of both documents, numbered from 0, and the cosine of their vectors; for a
    sentence without a partner, an empty range on the other side and the score 0.
    """

    source: range
    target: range
    score: float


Span = tuple[int, int, int, int]  # sentences from (source, target) to (source, target)
Band = tuple[np.ndarray, np.ndarray]  # first and last column to search in each row, int64[rows + 1]
VectorsOf = Callable[[np.ndarray, np.ndarray], np.ndarray]  # from sums and counts to vectors


def align(
    encoder: Encoder | str | Path,
    source: Any,
    target: Any,
    source_language: str | None = None,
    target_language: str | None = None,
    largest: int = LARGEST,
    progress: Progress | None = None,
) -> list[Alignment]:
    """Align the sentences of two documents, in their order; each is in exactly one alignment.

    Empty lines are in none, and no alignment crosses one. An alignment has at most `largest`
    sentences. Time and memory grow linearly with the documents. Raises `EmsError` for other types.
    """
    model = encoder if isinstance(encoder, Encoder) else Encoder(encoder)
    most = whole(largest, "largest", 32)

    def read(value: Any, name: str, language: str | None) -> Side:
        lines = lines_of(value, name)
        if model.is_static:
            return Side.of_sums(lines, *model.sums(lines, language), model.vectors_of)
        embed = partial(model.vectors, language=language, normalise=True)
        return Side.of_windows(lines, embed, most)

    first, second = read(source, "source", source_language), read(target, "target", target_language)
    return align_sides(first, second, most, progress)


@dataclass(frozen=True)
class Side:
    """One document: N sentences, or groups of adjacent ones. A row of `parts` is the sum over the
    words of a sentence, the counts of its pieces and n-grams, and its letters, so that rows of
    adjacent sentences add up to the row of their text.
    """

    parts: np.ndarray  # float32[N, s + 3]
    lines: np.ndarray  # int64[N]: the numbers of their lines
    vectors_of: VectorsOf
    joined: np.ndarray | None = None  # vectors [most, N, d] of windows, which do not add up

    @classmethod
    def of_sums(
        cls, texts: list[str], sums: np.ndarray, counts: np.ndarray, vectors_of: VectorsOf
    ) -> "Side":
        """Read the lines of a document with what `Encoder.sums` returns for them."""
        lines, letters = _sentences(texts)
        parts = np.column_stack([sums, counts[:, :2], letters]).astype(np.float32)
        return cls(parts[lines], lines, vectors_of)

    @classmethod
    def of_windows(
        cls, texts: list[str], embed: Callable[[list[str]], np.ndarray], most: int = LARGEST
    ) -> "Side":
        """Read the lines of a document; `embed` is to return unit vectors of 1 to `most` lines."""
        lines, letters = _sentences(texts)
        ends = range(1, len(lines) + 1)
        kept = [texts[line] for line in lines]
        windows = [
            " ".join(kept[max(0, n - size) : n]) for size in range(1, most + 1) for n in ends
        ]
        joined = np.array(np.split(embed(windows), most))
        parts = np.column_stack([joined[0], np.ones((len(lines), 2)), letters[lines]])
        return cls(parts.astype(np.float32), lines, lambda sums, _: sums, joined)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def letters(self) -> np.ndarray:
        return self.parts[:, -1]

    def units(self, parts: np.ndarray) -> np.ndarray:
        """Return the vectors of length 1 of rows of parts."""
        return unit_rows(self.vectors_of(parts[:, :-3], parts[:, -3:-1]))

    def halved(self) -> "Side":
        """Return groups of two; the last one of an odd number is alone."""
        parts = np.add.reduceat(self.parts, np.arange(0, len(self), 2))
        return Side(parts, np.arange(len(parts)), self.vectors_of)

    def mean(self) -> np.ndarray:
        """Return the mean of the vectors, float32[d]."""
        blocks = np.array_split(self.parts, 1 + len(self) // CELLS)
        return sum(self.units(block).sum(0) for block in blocks) / max(1, len(self))

    def range_of(self, start: int, end: int) -> range:
        """Return the numbers of the lines of the sentences from `start` to `end`."""
        return range(self.lines[start], self.lines[end - 1] + 1) if start < end else range(0)

    def of_spans(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the vectors of N spans of sentences, float32[N, d]."""
        if self.joined is not None:
            return self.joined[ends - starts - 1, ends - 1]
        parts = [self.parts[start:end].sum(0) for start, end in zip(starts, ends, strict=True)]
        return self.units(np.reshape(parts, (-1, self.parts.shape[1])))

    def windows(self, start: int, end: int, most: int) -> Iterator[np.ndarray]:
        """Return the windows of 1 to `most` adjacent sentences that end with those from `start` to
        `end`: vectors float32[most, N, d], letters float32[most, N], and bool[most, N], true for
        one that begins in the document and crosses no empty line.
        """
        before, rows, joined = max(0, start - most + 1), np.arange(start, end), self.joined
        parts, vectors, letters, legal = np.zeros_like(self.parts[before:end]), [], [], []
        for size in range(1, most + 1):
            parts[size - 1 :] += self.parts[before : max(before, end - size + 1)]
            own, first = parts[start - before :], np.maximum(rows - size + 1, 0)
            near = self.lines[rows] - self.lines[first] == size - 1
            vectors.append(self.units(own) if joined is None else joined[size - 1, start:end])
            letters.append(own[:, -1].copy())
            legal.append(near & (rows + 1 >= size))
        return map(np.stack, (vectors, letters, legal))


def _sentences(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the lines with text, and the letters and digits of all lines."""
    letters = np.array([sum(map(str.isalnum, text)) for text in texts])
    return np.array([n for n, text in enumerate(texts) if is_visible(text)], int), letters


# --- dynamic programming


def align_sides(
    first: Side, second: Side, largest: int = LARGEST, progress: Progress | None = None
) -> list[Alignment]:
    """Return the alignments of two documents, as `align` does; count the lines of the first."""
    spans = _spans(first, second, max(2, largest), progress)
    scores = np.zeros(len(spans))
    both = [at for at, span in enumerate(spans) if span[0] < span[2] and span[1] < span[3]]
    one, other, one_end, other_end = np.array([spans[at] for at in both], int).reshape(-1, 4).T
    scores[both] = cosines(first.of_spans(one, one_end), second.of_spans(other, other_end))
    return [
        Alignment(first.range_of(i, k), second.range_of(j, n), score)
        for (i, j, k, n), score in zip(spans, scores.tolist(), strict=True)
    ]


def _spans(first: Side, second: Side, largest: int, progress: Progress | None) -> list[Span]:
    """Return the cheapest alignments of two documents, searched from coarse to fine."""
    levels, spans = [(first, second)], None
    while max(map(len, levels[-1])) > DENSE or (len(first) and len(levels) == 1):
        levels.append((levels[-1][0].halved(), levels[-1][1].halved()))
    ratio = _ratio(first, second, [(0, 0, len(first), len(second))])
    for sides in reversed(levels):
        most, counted = (largest, progress) if sides[0] is first else (COARSE, None)
        spans = _search(*sides, most, _band(spans, *map(len, sides)), ratio, counted)
        ratio = _ratio(*sides, [span for span in spans if span[0] < span[2] and span[1] < span[3]])
    return spans


def _ratio(first: Side, second: Side, spans: list[Span]) -> float:
    """Return the logarithm of the ratio of letters in all spans together."""
    one, other = (
        sum(side.letters[span[at] : span[at + 2]].sum() for span in spans) + SMOOTH
        for at, side in enumerate((first, second))
    )
    return np.log(one / other)


def _band(spans: list[Span] | None, rows: int, columns: int) -> Band:
    """Return the columns to search: those near the spans of the level with half the sentences."""
    if spans is None or max(rows, columns) <= DENSE:
        return np.zeros(rows + 1, int), np.full(rows + 1, columns)
    path = np.minimum(2 * np.array([(0, 0), *(span[2:] for span in spans)]), (rows, columns))
    row, (y, x) = np.arange(rows + 1), path.T
    before = y[np.searchsorted(y, np.maximum(row - NEAR, 0), "right") - 1]
    after = y[np.searchsorted(y, np.minimum(row + NEAR, rows))]
    low, high = x[np.searchsorted(y, before)], x[np.searchsorted(y, after, "right") - 1]
    middle = np.interp(row, y, x).astype(int)
    low = np.minimum(low, middle - NEAR).clip(0)
    return low, np.maximum(high, middle + NEAR).clip(None, columns)


def _search(
    first: Side, second: Side, largest: int, band: Band, ratio: float, progress: Progress | None
) -> list[Span]:
    """Return the cheapest path from the beginning to the end of both sides within a band."""
    low, high = band
    shapes = [(m, n) for m in range(1, largest) for n in range(1, largest - m + 1)]
    shapes += [(1, 0), (0, 1)]  # a sentence of the first side is skipped, one of the second
    m, n = np.array(shapes[:-2]).T
    width = largest + len(second) + 1
    totals = np.full((largest, width), np.inf)  # of the last rows, after `largest` columns
    totals[0, largest : largest + high[0] + 1] = SKIP * np.arange(high[0] + 1)
    steps = [np.full(high[0] + 1, len(shapes) - 1, np.uint16)]
    for start, costs in _costs(first, second, np.array(shapes[:-2]), band, ratio):
        for row, own in enumerate(costs.swapaxes(0, 1), start=start + 1):
            columns = np.arange(low[row], high[row] + 1)
            place = largest + columns
            candidates = np.empty((len(shapes) - 1, len(columns)))
            np.take(totals, ((row - m) % largest * width - n)[:, None] + place, out=candidates[:-1])
            candidates[:-1] += own[:, columns - low[start + 1]]
            candidates[-1] = totals[(row - 1) % largest, place] + SKIP
            step = candidates.argmin(0)
            total = candidates[step, columns - low[row]] - SKIP * columns
            cheapest = np.minimum.accumulate(total)  # with sentences of the second side skipped
            steps.append(np.where(cheapest < total, len(shapes) - 1, step).astype(np.uint16))
            totals[row % largest, largest + low[max(0, row - largest)] : place[0]] = np.inf
            totals[row % largest, place] = cheapest + SKIP * columns
        if progress:
            progress.add(costs.shape[1])
    spans, (row, column) = [], (len(first), len(second))
    while row or column:
        m, n = shapes[steps[row][column - low[row]]]
        spans.append((row - m, column - n, row, column))
        row, column = row - m, column - n
    return spans[::-1]


def _costs(
    first: Side, second: Side, shapes: np.ndarray, band: Band, ratio: float
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (first row, costs float32[shapes, rows, columns]) of blocks of rows; inf where an
    alignment is impossible. The columns are the union of the rows' bands.
    """
    low, high = band
    most, (m, n) = shapes.max(), shapes.T - 1
    means = first.mean(), second.mean()
    lengths = [side.letters.mean() + SMOOTH if len(side) else 1 for side in (first, second)]
    start = 0
    while start < len(first):
        size = min(64, len(first) - start)
        while size > 1 and size * (high[start + size] - low[start + 1]) > CELLS:
            size //= 2
        end, left = start + size, low[start + 1]
        own, own_letters, own_legal = first.windows(start, end, most)
        other, other_letters, other_legal = second.windows(max(0, left - 1), high[end], most)
        costs = np.full((len(shapes), size, high[end] + 1 - left), np.inf, np.float32)
        cosine = np.stack([own[i] @ other[k].T for i, k in zip(m, n, strict=True)])
        near = own @ means[1], other @ means[0]  # [most, rows or columns]
        mean = (near[0][m][:, :, None] + near[1][n][:, None]) / 2
        letters = [own_letters[m][:, :, None] + SMOOTH, other_letters[n][:, None] + SMOOTH]
        length = np.sqrt((letters[0] / lengths[0] + letters[1] / lengths[1]) / 2)
        deviation = np.abs(np.log(letters[0]) - np.log(letters[1]) - ratio)
        cost = (m + n + 2)[:, None, None] / 2 * (1 - cosine) / np.maximum(1 - mean, EPSILON)
        cost += LENGTH * length * deviation - BONUS
        legal = own_legal[m][:, :, None] & other_legal[n][:, None]
        costs[:, :, costs.shape[2] - cost.shape[2] :] = np.where(legal, cost, np.inf)
        yield start, costs
        start = end
