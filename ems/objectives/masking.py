"""Which tokens of a batch are hidden from the encoder, for UGT, SMLM, MLM and the authors' code.

Notable choices:
- a pure function of (seed, step): the Philox stream of the batch's draw, far ahead in it, so that
  masks and pairs are independent, and killed and resumed equals never killed;
- each pair has its own random numbers, by its place in the step: processes that share a step mask
  what one would;
- `one` hides one token of one random side of each pair (the authors' code of EMS), `word` prefers
  tokens that are not punctuation only (the Lightweight code), `mlm` is BERT's: 15 % of a sentence,
  at least one, of which 80 % become <mask>, 10 % a random piece, and 10 % stay.
"""

import unicodedata
from dataclasses import dataclass, replace

import numpy as np
import sentencepiece

from ems.shards.reader import Batch
from ems.text.subwords import MASK

SHARE, REPLACED, RANDOM = 0.15, 0.8, 0.1  # of MLM (Devlin et al. 2019, section 3.1)
WORD_START = "▁"
HIDES = ("mlm", "word", "one")  # the first that a system needs is what it hides


@dataclass(frozen=True)
class Pieces:
    """bool[V] each: whether a piece is `text` (no control symbol), and a `word` (it has more than
    punctuation).
    """

    text: np.ndarray
    word: np.ndarray

    @classmethod
    def of(cls, vocabulary: sentencepiece.SentencePieceProcessor) -> "Pieces":
        """What a vocabulary says about its pieces; <unk> is neither."""
        ids = range(vocabulary.get_piece_size())
        text = [not (vocabulary.is_control(at) or vocabulary.is_unknown(at)) for at in ids]
        word = [known and _is_word(vocabulary.id_to_piece(at)) for at, known in enumerate(text)]
        return cls(np.array(text), np.array(word))

    @classmethod
    def assumed(cls, size: int, languages: int) -> "Pieces":
        """All that follows <pad>, <unk>, <mask> and the language tokens is text, and words."""
        text = np.arange(size) > MASK + languages
        return cls(text, text)


def _is_word(piece: str) -> bool:
    categories = {unicodedata.category(letter)[0] for letter in piece.strip(WORD_START)}
    return bool(categories - {"P", "S"})


@dataclass(frozen=True)
class Masker:
    """Hides tokens of batches; `hide` is `one`, `word` or `mlm`."""

    hide: str
    pieces: Pieces
    max_tokens: int

    def __call__(
        self, batch: Batch, seed: int, step: int, first: int = 0, total: int | None = None
    ) -> Batch:
        """The batch with `inputs` and `places`; its pairs are those from `first` on of the `total`
        of the step (all of them, if None).
        """
        random = np.random.Generator(np.random.Philox(key=[seed, step], counter=[0, 0, 0, 1]))
        of_step = range(total or batch.pairs)[first : first + batch.pairs]
        layout = _Layout.of(batch)
        hide = _mlm if self.hide == "mlm" else _one
        places, inputs = hide(self, batch, layout, random, (total or batch.pairs, of_step))
        return replace(batch, inputs=inputs, places=places)


@dataclass
class _Layout:
    """Of a batch: where each row's sentence starts, and how long it is; both [2B]."""

    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, batch: Batch) -> "_Layout":
        starts, lengths = np.empty_like(batch.lengths), np.empty_like(batch.lengths)
        starts[batch.rows] = np.cumsum(batch.lengths) - batch.lengths
        lengths[batch.rows] = batch.lengths
        return cls(starts, lengths)


_Step = tuple[int, range]  # the pairs of a step, and which of them a batch has


def _one(
    masker: Masker, batch: Batch, layout: _Layout, random: np.random.Generator, of: _Step
) -> tuple[np.ndarray, np.ndarray]:
    """places[B], in the order of the pairs, and inputs[T] with <mask> there."""
    side, pick = random.random((2, of[0]))[:, of[1]]
    rows = np.arange(batch.pairs) + batch.pairs * (side < 0.5)  # (B,)
    starts, lengths = layout.starts[rows], layout.lengths[rows]
    allowed = masker.pieces.word[batch.tokens] if masker.hide == "word" else None
    places = starts + (pick * lengths).astype(np.int64)
    if allowed is not None:
        before = np.concatenate([[0], np.cumsum(allowed)])  # allowed tokens before each
        counts = before[starts + lengths] - before[starts]  # (B,)
        nth = before[starts] + (pick * counts).astype(np.int64)
        places = np.where(counts > 0, np.searchsorted(before, nth, side="right") - 1, places)
    inputs = batch.tokens.copy()
    inputs[places] = MASK
    return places, inputs


def _mlm(
    masker: Masker, batch: Batch, layout: _Layout, random: np.random.Generator, of: _Step
) -> tuple[np.ndarray, np.ndarray]:
    """places[M] ascending, and inputs[T] as BERT sees them."""
    grid = random.random((of[0], 2, masker.max_tokens, 3))[of[1]]  # of each possible token
    row = np.repeat(batch.rows, batch.lengths)  # (T,)
    position = np.arange(len(row)) - layout.starts[row]
    order, how, which = grid[row % batch.pairs, row // batch.pairs, position].T  # (T,) each
    sentence = np.repeat(np.arange(len(batch.rows)), batch.lengths)
    ranked = np.lexsort((order, sentence))  # tokens of a sentence stay together
    quota = masked_count(layout.lengths[row])  # (T,)
    places = np.sort(ranked[position < quota])  # `position` is the rank now
    inputs, text = batch.tokens.copy(), np.flatnonzero(masker.pieces.text)
    how, which = how[places], which[places]
    drawn = text[(which * len(text)).astype(np.int64)]
    drawn = np.where(how < REPLACED, MASK, drawn)
    inputs[places] = np.where(how < REPLACED + RANDOM, drawn, batch.tokens[places])
    return places, inputs


def masked_count(lengths: np.ndarray) -> np.ndarray:
    """How many tokens of sentences of `lengths` MLM hides."""
    return np.maximum(1, np.rint(SHARE * lengths)).astype(np.int64)


def sentence_keys(batch: Batch) -> np.ndarray:
    """int64[2B] by row: a 64-bit hash of the tokens of each sentence, the same for the same text.

    Two different texts have the same key with probability 2^-64.
    """
    lengths = batch.lengths
    starts = np.cumsum(lengths) - lengths
    position = np.arange(len(batch.tokens)) - np.repeat(starts, lengths)
    mixed = _mix(_mix(batch.tokens.astype(np.uint64)) + position.astype(np.uint64))
    keys = np.empty(len(lengths), np.int64)
    keys[batch.rows] = _mix(np.add.reduceat(mixed, starts)).view(np.int64)
    return keys


def _mix(values: np.ndarray) -> np.ndarray:
    """uint64 -> uint64, every bit of the result depends on every bit (splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
