"""Masking: tokens of a batch that are hidden from the encoder, for UGT, SMLM and MLM. `one` hides
one token on a random side of each pair (the authors' code of EMS), `word` prefers tokens with a
letter or digit (the Lightweight code), `mlm` is BERT's masking. Masks are a function of (seed,
step) and of a pair's place in the step, so they do not depend on the number of processes.
"""

import unicodedata
from dataclasses import dataclass, replace

import numpy as np
import sentencepiece

from ems.shards.reader import Batch
from ems.text.subwords import MASK

SHARE, REPLACED, RANDOM = 0.15, 0.8, 0.1  # of MLM (Devlin et al. 2019, section 3.1)
WORD_START = "▁"
HIDES = ("mlm", "word", "one")  # a system uses the first one that it needs


@dataclass(frozen=True)
class Pieces:
    """Classes of pieces, bool[V] each: `text` (no control symbol) and `word` (not punctuation)."""

    text: np.ndarray
    word: np.ndarray

    @classmethod
    def classify(cls, vocabulary: sentencepiece.SentencePieceProcessor) -> "Pieces":
        """Classify the pieces of a vocabulary; <unk> belongs to neither class."""
        text, word = [], []
        for at in range(vocabulary.get_piece_size()):
            letters = vocabulary.id_to_piece(at).strip(WORD_START)
            kinds = {unicodedata.category(letter)[0] for letter in letters}
            text.append(not (vocabulary.is_control(at) or vocabulary.is_unknown(at)))
            word.append(text[-1] and not kinds <= {"P", "S"})
        return cls(np.array(text), np.array(word))


@dataclass(frozen=True)
class Masker:
    """Hides tokens of batches; `hide` is `one`, `word` or `mlm`."""

    hide: str
    pieces: Pieces
    max_tokens: int

    def __call__(
        self, batch: Batch, seed: int, step: int, first: int = 0, total: int | None = None
    ) -> Batch:
        """Add `inputs` and `places` to a batch; `first` and `total` as in `System.prepared`."""
        # the counter is far ahead of the draw's, so that masks and pairs are independent
        random = np.random.Generator(np.random.Philox(key=[seed, step], counter=[0, 0, 0, 1]))
        total = total or batch.pairs
        own = slice(first, first + batch.pairs)  # this batch's pairs in the step
        starts, lengths = np.empty_like(batch.lengths), np.empty_like(batch.lengths)
        starts[batch.rows] = np.cumsum(batch.lengths) - batch.lengths
        lengths[batch.rows] = batch.lengths
        if self.hide == "mlm":
            grid = random.random((total, 2, self.max_tokens, 3))[own]  # three per possible token
            places, inputs = self._mlm(batch, starts, lengths, grid)
        else:
            places, inputs = self._one(batch, starts, lengths, random.random((2, total))[:, own])
        return replace(batch, inputs=inputs, places=places)

    def _one(
        self, batch: Batch, starts: np.ndarray, lengths: np.ndarray, random: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return places[B], by pair, and inputs[T] with <mask> at them; starts[2B] and lengths[2B]
        are of sentences by row, random[2, B] in [0, 1).
        """
        side, pick = random
        rows = np.arange(batch.pairs) + batch.pairs * (side < 0.5)  # (B,)
        starts, lengths = starts[rows], lengths[rows]
        places = starts + (pick * lengths).astype(np.int64)
        if self.hide == "word":
            before = np.concatenate([[0], np.cumsum(self.pieces.word[batch.tokens])])  # words
            counts = before[starts + lengths] - before[starts]  # (B,)
            nth = before[starts] + (pick * counts).astype(np.int64)
            places = np.where(counts > 0, np.searchsorted(before, nth, side="right") - 1, places)
        inputs = batch.tokens.copy()
        inputs[places] = MASK
        return places, inputs

    def _mlm(
        self, batch: Batch, starts: np.ndarray, lengths: np.ndarray, grid: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return places[M], ascending, and inputs[T] masked like BERT's."""
        row = np.repeat(batch.rows, batch.lengths)  # (T,)
        position = np.arange(len(row)) - starts[row]
        order, fate, pick = grid[row % batch.pairs, row // batch.pairs, position].T  # (T,) each
        sentence = np.repeat(np.arange(len(batch.rows)), batch.lengths)
        ranked = np.lexsort((order, sentence))  # tokens of a sentence stay together
        quota = masked_count(lengths[row])  # (T,)
        places = np.sort(ranked[position < quota])  # `position` is the rank now
        inputs, text = batch.tokens.copy(), np.flatnonzero(self.pieces.text)
        fate, pick = fate[places], pick[places]
        drawn = text[(pick * len(text)).astype(np.int64)]
        drawn = np.where(fate < REPLACED, MASK, drawn)
        inputs[places] = np.where(fate < REPLACED + RANDOM, drawn, batch.tokens[places])
        return places, inputs


def masked_count(lengths: np.ndarray) -> np.ndarray:
    return np.maximum(1, np.rint(SHARE * lengths)).astype(np.int64)


def sentence_keys(batch: Batch) -> np.ndarray:
    """Hash the tokens of each sentence to 64 bits, by row: int64[2B]."""
    lengths = batch.lengths
    starts = np.cumsum(lengths) - lengths
    position = np.arange(len(batch.tokens)) - np.repeat(starts, lengths)
    mixed = _mix(_mix(batch.tokens.astype(np.uint64)) + position.astype(np.uint64))
    keys = np.empty(len(lengths), np.int64)
    keys[batch.rows] = _mix(np.add.reduceat(mixed, starts)).view(np.int64)
    return keys


def _mix(values: np.ndarray) -> np.ndarray:
    """Mix uint64 so that every bit of the result depends on every bit of the input (splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
