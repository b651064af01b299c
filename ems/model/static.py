"""Text -> vectors by an encoder without layers, in NumPy, with a cache of words.

    vector = sum(pieces) / P + WEIGHT * sum(n-grams) / G

Neither pieces nor n-grams cross words (ems.model.table), so the sums of a line are the sums over
its words. A word's sums and counts are computed once and cached while it is frequent.

The vector of a line depends on the line and the model alone, to the last bit: every sum is a chain
of additions in float32 in the order of the text, first within a word, then over the words. NumPy
and static.c, which is faster and needs a compiler, add one row after another, and elementwise
operations round alike on every machine (IEEE 754). A test compares both with a plain loop.
"""

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ems.base.errors import needs_extra
from ems.base.files import ENCODER
from ems.base.provenance import digest, source_hash
from ems.model.folder import STATIC, Description, describe
from ems.model.hashing import BASE, GAP, LONGEST, MIX, MOST, POSITIVE, SHIFT, WEIGHT
from ems.model.lines import Encoded, Tokeniser, check_finite
from ems.model.weights import in_bytes, mapped
from ems.text.normalise import tidy_lines
from ems.text.subwords import UNK, by_characters, encode_lines, has_words

Make = Callable[[list[str], np.ndarray, np.ndarray], np.ndarray]
CACHE_MB = 64
UNITS = 8192  # words in a block, about; the sums of new ones are in memory together
AT_ONCE = 256  # words that NumPy sums together, so that they fit the second-level cache
LONG = 24  # characters of the longest word that is cached
ENTRY = 250  # bytes of a word in the cache without its vectors, about
# whether a code point is of a script without spaces between words: Thai, Lao, Tibetan, Myanmar,
# Khmer, kana, Han
UNSPACED = np.zeros(0x10000, bool)
for _first, _last in ((0xE01, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF)):
    UNSPACED[_first : _last + 1] = True

_spec = find_spec("ems.model._static")
KERNEL = ctypes.CDLL(_spec.origin) if _spec else None  # static.c, where it was compiled


def is_static(description: Description) -> bool:
    """Return whether a model is a table of vectors, without layers or a layer norm."""
    return description.weights == STATIC or not description.model.attends


def load_encoder(
    folder: Path,
    device: str = "auto",
    precision: str = "float32",
    threads: int = 1,
    cache_mb: float = CACHE_MB,
) -> Any:
    """Load the encoder of a model folder; a static one in NumPy unless `device` is cuda."""
    if is_static(describe(folder)) and device != "cuda":
        return StaticEncoder(folder, precision, cache_mb, threads)
    with needs_extra(f"{folder}: a model with layers, or on a GPU,", "layers"):
        from ems.model.encode import SentenceEncoder
    return SentenceEncoder(folder, device, precision)


class StaticEncoder(Tokeniser):
    """An encoder without layers, with its segmenters and its vocabulary. `precision` int8 keeps the
    tables as int8 with a scale per row; bfloat16 is float32 here. Vectors depend neither on the
    `cache_mb` MB of words nor on `threads`. Raises `EmsError` for a missing or damaged file.
    """

    def __init__(
        self, folder: Path, precision: str = "float32", cache_mb: float = CACHE_MB, threads: int = 1
    ) -> None:
        self._description = about = describe(folder)
        super().__init__(folder, about)
        self.threads = threads
        self.precision = "int8" if "int8" in (precision, about.rows) else "float32"
        exported = about.weights == STATIC
        width = (about.dimensions if exported else None) or about.model.pooled_width
        self.dimensions = about.dimensions or width
        pieces, buckets = self.vocabulary.get_piece_size(), 0 if exported else about.model.ngrams
        shapes = {"embedding.weight" if exported else "table.pieces.weight": (pieces, width)}
        if buckets:
            shapes["table.ngrams.letters"] = (pieces, LONGEST)
            shapes["table.ngrams.table.weight"] = (buckets, width)
        shapes = in_bytes(shapes) if about.rows == "int8" else shapes
        weights = mapped(folder / (about.weights or ENCODER), shapes)
        tables = [weights[name] for name in shapes if name.endswith((".weight", ".bytes"))]
        scales = [weights[name] for name in shapes if name.endswith(".scales")]
        pairs = zip_longest(tables, scales)
        self._tables = [Table(rows, precision == "int8", own) for rows, own in pairs]
        self._letters = weights.get("table.ngrams.letters")
        self._cache = Words(cache_mb, len(tables) * width, UNITS + self.max_tokens)
        self._kinds: dict[str, str] = {}  # of words in the cache, by segmenter: their prefix
        self._lock = Lock()
        sums = np.empty((1, len(tables) * width), np.float32)
        check_finite(self.vectors_of(sums, self._sum([[UNK]], sums, np.zeros(1, np.int64))), folder)

    @property
    def identity(self) -> str:
        """Hash of all that vectors depend on: weights, vocabulary, settings and source."""
        return digest([self._description.written, source_hash(__name__), self.precision])

    def of_one_language(self, lines: list[str], language: str | None, progress: Any) -> Encoded:
        vectors = np.empty((len(lines), self.dimensions), np.float32)
        counts = np.empty((len(lines), 5), np.int64)
        for part, sums, own in self._summed(lines, language, progress):
            vectors[part], counts[part] = self.vectors_of(sums, own[:, 1:]), own
        check_finite(vectors, self.folder)
        return Encoded(vectors, *counts.T[[0, 3, 4]])

    def sums(self, lines: list[str], language: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Return sums float32[N, s] and counts int64[N, 4] of lines, for `vectors_of`; zeros for a
        line without a known piece. Lines joined by spaces have the sum of their rows.
        """
        sums = np.empty((len(lines), self._cache.sums.shape[1]), np.float32)
        counts = np.empty((len(lines), 4), np.int64)
        for part, own, its in self._summed(lines, language):
            sums[part], counts[part] = own, its[:, 1:]
        sums[(counts[:, 2] > 0) & (counts[:, 3] == 0)] = 0
        return sums, counts

    def _summed(
        self, lines: list[str], language: str | None, progress: Any = None
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield the sums of each block of lines, and their counts as `_block` returns them."""
        needed = lines or isinstance(language, str)  # else the language does not matter
        for start, *block in self._blocks(lines, language) if needed else ():
            part = slice(start, start + len(block[0]))
            with self._lock:  # of the cache
                sums = self._block(lines[part], *block, language)
            yield part, *sums
            if progress:
                progress.add(len(block[0]))

    # --- blocks of lines

    def _blocks(
        self, lines: list[str], language: str | None
    ) -> Iterator[tuple[int, list[list[str]], np.ndarray]]:
        """Yield (first line, the words of each, their number int64[N]), at most UNITS words."""
        cut, start, count = self._cut(language), 0, 256
        while start < len(lines):
            units = cut(lines[start : start + count])
            sizes = np.fromiter(map(len, units), np.int64, len(units))
            ends = np.cumsum(np.minimum(sizes, self.max_tokens))
            fit = max(1, int(np.searchsorted(ends, UNITS, "right")))
            yield start, units[:fit], sizes[:fit]
            start += min(fit, len(units))
            count = max(16, int(0.9 * UNITS * len(units) / max(1, ends[-1])))

    def _cut(self, language: str | None) -> Callable[[list[str]], list[list[str]]]:
        """Return the function from lines to their words; to no words if pieces may cross them."""
        by_word, prefix = self.by_word(language), self._prefix(language)
        if not has_words(self.vocabulary) or by_characters(self.vocabulary, language or ""):
            return lambda lines: [[]] * len(lines)
        if by_word and not prefix:
            return lambda lines: list(map(str.split, lines))
        texts = list if by_word else lambda lines: self.words(lines, language)
        return lambda lines: [[prefix + word for word in line.split()] for line in texts(lines)]

    def _prefix(self, language: str | None) -> str:
        """Return what tells words of different segmenters apart; "" for the first one used."""
        kind = self.segmenter(language) if self.by_word(language) else "segmented"
        return self._kinds.setdefault(kind, f"{len(self._kinds)} " if self._kinds else "")

    def _block(
        self, lines: list[str], units: list[list[str]], sizes: np.ndarray, language: str | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of lines, and their counts [N, 5]: of all tokens, then `_sum`."""
        most = self.max_tokens
        if sizes.max() > most:
            units = [line if len(line) <= most else [] for line in units]
            sizes = np.where(sizes <= most, sizes, 0)
        words = list(chain.from_iterable(units))
        slots = self._cache.slots(words, partial(self._sum_words, language))
        sums = np.empty((len(lines), self._cache.sums.shape[1]), np.float32)
        Table(self._cache.sums).add(slots, sizes, sums, np.arange(len(lines)), self.threads)
        counts = self._cache.counted(slots, sizes)
        tokens = counts[:, 0].copy()
        whole = np.flatnonzero((tokens == 0) | (tokens > most)).tolist()
        if whole:
            encoded = self._encode(self.words([lines[row] for row in whole], language), language)
            tokens[whole] = list(map(len, encoded))
            read = [ids[:most] or [UNK] for ids in encoded]
            counts[whole] = self._sum(read, sums, np.array(whole))
        return sums, np.column_stack([np.maximum(tokens, 1), counts])

    def _sum_words(
        self, language: str | None, words: list[str], out: np.ndarray, places: np.ndarray
    ) -> np.ndarray:
        """Do `_sum` for words with the prefix of their kind."""
        prefix = self._prefix(language)
        texts = [word.removeprefix(prefix) for word in words] if prefix else words
        if self.by_word(language):
            texts = self._prepared(texts, language)
        return self._sum(self._encode(texts, language), out, places)

    def _prepared(self, words: list[str], language: str | None) -> list[str]:
        """Return `self.words(words)`, in one text if all are tidy and nothing segments them."""
        if self.segmenter(language) != "none":
            return self.words(words, language)
        text = " ".join(words)
        if tidy_lines([text], self.tidy)[0] != text:
            return [word.lower() for word in tidy_lines(words, self.tidy)]
        return text.lower().split(" ")

    def _encode(self, texts: list[str], language: str | None) -> list[list[int]]:
        return encode_lines(self.vocabulary, texts, language or "", self.threads)

    # --- sums

    def _sum(self, tokens: list[Any], out: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Write the sums over the token ids of each of N words to float32 out[places]: pieces,
        n-grams. Return int64[N, 4]: counts of these, of unknown and of meaningful pieces.
        """
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        ids = np.fromiter(chain.from_iterable(tokens), np.int64, lengths.sum())
        of_pieces, *of_ngrams = np.split(out, len(self._tables), axis=1)
        self._tables[0].add(ids, lengths, of_pieces, places, self.threads)
        grams = np.zeros_like(lengths)
        for part in of_ngrams:
            rows, grams = ngrams(self._letters, len(self._tables[1].rows), ids, lengths)
            self._tables[1].add(rows, grams, part, places, self.threads)
        return np.column_stack([lengths, grams, *self.known(ids, lengths)])

    def vectors_of(self, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the vectors of N lines from their sums and counts, float32[N, d]."""
        pieces, *grams = np.split(sums, len(self._tables), axis=1)
        divisors = np.maximum(counts[:, :2, None], 1).astype(np.float32)  # (N, 2, 1)
        vectors = pieces / divisors[:, 0]
        for each in grams:
            vectors += WEIGHT * (each / divisors[:, 1])
        return vectors[:, : self.dimensions]


def call(function: str, *values: Any) -> None:
    """Call a function of static.c with arrays in C order, whole numbers and None (null)."""
    arrays = [each.ctypes if isinstance(each, np.ndarray) else each for each in values]
    passed = [ctypes.c_int64(each) if isinstance(each, int) else each for each in arrays]
    getattr(KERNEL, function)(*passed)


def ngrams(
    letters: np.ndarray, buckets: int, ids: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Do `ems.model.table.Ngrams.rows`, where steps are explained: rows, and counts int64[N]."""
    if KERNEL:
        spelt = np.empty(LONGEST * lengths.max(initial=0) + 3, np.uint8)
        counts, hashing = np.empty_like(lengths), (LONGEST, GAP, MOST, BASE, MIX, POSITIVE, SHIFT)
        rows = np.empty((len(ids) * LONGEST + len(lengths)) * (MOST - 1), np.int64)
        call("ngrams", letters, *hashing, buckets, ids, lengths, len(lengths), spelt, counts, rows)
        return rows[: counts.sum()], counts
    word = np.repeat(np.arange(len(lengths)), lengths)
    spelt = np.zeros((len(ids), 1 + LONGEST), np.uint8)
    spelt[:, 0] = GAP * np.append(True, np.diff(word) != 0)[: len(ids)]
    spelt[:, 1:] = letters[ids]
    places = np.flatnonzero(spelt)
    row = np.append(spelt.ravel()[places], [GAP] * MOST).astype(np.int64)
    word, size = word[places // (1 + LONGEST)], len(places)
    filled, hashed = row != GAP, row[:size]
    inside, hashes, kept = np.ones(size, bool), [], []
    for more in range(1, MOST):
        hashed = hashed * BASE + row[more : more + size]
        mixed = (hashed * MIX & POSITIVE) >> SHIFT
        hashes.append(mixed & buckets - 1 if buckets & buckets - 1 == 0 else mixed % buckets)
        kept.append(inside if more > 1 else filled[:size] | filled[1 : 1 + size])
        inside = inside & filled[more : more + size]
    chosen = np.stack(kept, 1)  # (letters, lengths)
    counts = np.bincount(word, chosen.sum(1), len(lengths)).astype(np.int64)
    return np.stack(hashes, 1)[chosen], counts


class Table:
    """Rows of vectors [V, d]: float32, float16, bfloat16 (uint16), or `int8` times scales [V]."""

    def __init__(
        self, rows: np.ndarray, int8: bool = False, scales: np.ndarray | None = None
    ) -> None:
        self.rows, self.scales = rows, scales
        if int8 and scales is None:
            self.rows = np.empty(rows.shape, np.int8)
            self.scales = np.empty(len(rows), np.float32)
            for start in range(0, len(rows), UNITS):  # without a float32 copy of all of them
                part = slice(start, start + UNITS)
                some = as_float32(rows[part])
                self.scales[part] = np.abs(some).max(1) / 127
                self.rows[part] = np.rint(some / np.maximum(self.scales[part, None], 1e-30))

    def add(
        self,
        rows: np.ndarray,
        counts: np.ndarray,
        out: np.ndarray,
        places: np.ndarray,
        threads: int = 1,
    ) -> None:
        """Write the sums of N words, of counts[N] consecutive `rows` each, to out[places[N]]."""
        compiled = KERNEL and self.rows.dtype in (np.float32, np.int8)
        add = self._add_compiled if compiled else self._add_in_numpy
        step = max(1, -(-len(counts) // threads)) if compiled else AT_ONCE
        ends = np.append(0, np.cumsum(counts))

        def add_some(start: int) -> None:
            part = slice(start, start + step)
            own = rows[ends[start] : ends[min(start + step, len(counts))]]
            add(own, counts[part], out, places[part])

        with ThreadPoolExecutor(threads) as pool:
            run = pool.map if threads > 1 else map
            list(run(add_some, range(0, len(counts), step)))

    def _add_compiled(
        self, rows: np.ndarray, counts: np.ndarray, out: np.ndarray, places: np.ndarray
    ) -> None:
        if rows.max(initial=0) >= len(self.rows) or rows.min(initial=0) < 0:
            raise IndexError(f"expected rows below {len(self.rows):,}, found {rows.max():,}")
        name = "sums_float32" if self.scales is None else "sums_int8"
        of = (self.rows, self.scales, self.rows.shape[1], rows, len(rows), counts, len(counts))
        call(name, *of, out, out.strides[0] // out.itemsize, places)

    def _add_in_numpy(
        self, rows: np.ndarray, counts: np.ndarray, out: np.ndarray, places: np.ndarray
    ) -> None:
        order = np.argsort(-counts, kind="stable")
        starts, sizes = (np.cumsum(counts) - counts)[order], counts[order]
        sums = np.zeros((len(order), out.shape[1]), np.float32)
        for at in range(sizes[0]):
            more = np.count_nonzero(sizes > at)  # words
            sums[:more] += self._take(rows[starts[:more] + at])
        out[places[order]] = sums

    def _take(self, index: np.ndarray) -> np.ndarray:
        rows = self.rows.take(index, 0)
        return as_float32(rows) if self.scales is None else rows * self.scales[index, None]


def as_float32(rows: np.ndarray) -> np.ndarray:
    """Convert rows of float32, float16, or bfloat16 in uint16."""
    if rows.dtype == np.uint16:
        return (rows.astype(np.uint32) << 16).view(np.float32)
    return rows.astype(np.float32, copy=False)


class Words:
    """The sums and counts of words: of frequent ones always, of the others for one block. If little
    room is left, the quarter used least is dropped, and earlier uses of the others count half.
    """

    def __init__(self, megabytes: float, width: int, block: int) -> None:
        self.capacity = int(1e6 * megabytes // (4 * width + ENTRY))
        self.sums = np.empty((self.capacity + block, width), np.float32)
        self._counts = np.empty((2, self.capacity + block), np.int64)  # two in each number
        self._slots: dict[str, int] = {}
        self._words = np.empty(self.capacity, object)  # of each slot that is used
        self._free = list(range(self.capacity))[::-1]
        self._uses = np.zeros(self.capacity + block, np.int64)

    def slots(self, words: list[str], make: Make) -> np.ndarray:
        """Return the slot of each word until the next call; `make` writes sums, returns counts."""
        if 8 * len(self._free) < self.capacity:
            self._drop()
        slots = np.fromiter(map(self._slots.get, words, repeat(-1)), np.int64, len(words))
        unknown = np.flatnonzero(slots < 0)
        if len(unknown):
            asked = [words[at] for at in unknown.tolist()]
            new, kept = self._sorted(list(dict.fromkeys(asked)))
            room = len(self._free) - kept
            more = range(self.capacity, self.capacity + len(new) - kept)
            places = np.array([*self._free[room:], *more])
            counts = make(new, self.sums, places)
            self._counts[:, places] = counts[:, ::2].T << 32 | counts[:, 1::2].T
            made = dict(zip(new, places.tolist(), strict=True))
            slots[unknown] = np.fromiter(map(made.__getitem__, asked), np.int64, len(asked))
            del self._free[room:]
            self._slots.update(islice(made.items(), kept))
            self._words[places[:kept]] = new[:kept]
        np.add.at(self._uses, slots, 1)
        return slots

    def counted(self, slots: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the counts of texts of sizes[N] words each, int64[N, 4]."""
        ends = np.append(0, np.cumsum(sizes))
        totals = [np.diff(np.append(0, np.cumsum(own[slots]))[ends]) for own in self._counts]
        return np.column_stack([part for own in totals for part in (own >> 32, own & 0xFFFFFFFF)])

    def _sorted(self, words: list[str]) -> tuple[list[str], int]:
        """Return new words, first the kept ones, and the number of kept ones."""
        letters = np.frombuffer("\n".join(words).encode("utf-32-le", "surrogatepass"), np.uint32)
        ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters))
        unspaced = UNSPACED[np.minimum(letters, len(UNSPACED) - 1)]
        within = np.add.reduceat(unspaced, np.append(0, ends[:-1]), dtype=np.int64)
        kept = (within == 0) & (np.diff(ends, prepend=-1) <= LONG + 1)
        if not kept.all():
            words = list(map(words.__getitem__, np.argsort(~kept, kind="stable").tolist()))
        return words, min(int(kept.sum()), len(self._free))

    def _drop(self) -> None:
        used = np.setdiff1d(np.arange(self.capacity), self._free, assume_unique=True)
        dropped = used[np.argsort(self._uses[used], kind="stable")[: self.capacity // 4]]
        for word in self._words[dropped]:
            del self._slots[word]
        self._free += dropped.tolist()
        self._uses >>= 1
        self._uses[self._free] = 0
