"""A table of vectors of pieces and n-grams, whose mean is a sentence embedding or is added to it.

Each piece is romanised to Latin letters and digits (anyascii). A batch of pieces is then a row of
letters in which everything else is a gap. An n-gram is n neighbouring letters, of which only the
first or last may be a gap: `_na`, `nam`, `me_`. Its hash selects a row of a table, as in fastText
(Bojanowski et al. 2017, https://aclanthology.org/Q17-1010). So the ids of pieces suffice.

An exported model runs this file (ems/export/folder.py): it imports PyTorch and hashing.py only.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ems.model.hashing import BASE, GAP, LONGEST, MIX, MOST, POSITIVE, SHIFT, WEIGHT


class EmbeddingTable(nn.Module):
    """Vectors of pieces, and `ngrams` vectors of hashed n-grams; no layer norm follows."""

    def __init__(self, width: int, pieces: int, ngrams: int = 0) -> None:
        super().__init__()
        self.pieces = nn.Embedding(pieces, width)
        self.ngrams = Ngrams(ngrams, width, pieces) if ngrams else None

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return [N, d], means of pieces + WEIGHT * means of n-grams, for packed tokens[T]."""
        means = bag_means(self.pieces.weight, tokens, lengths)
        return means if self.ngrams is None else means + WEIGHT * self.ngrams(tokens, lengths)


class Ngrams(nn.Module):
    """Vectors of `buckets` hashed n-grams, and the letters of each piece."""

    letters: Tensor

    def __init__(self, buckets: int, width: int, pieces: int) -> None:
        super().__init__()
        self.table = nn.Embedding(buckets, width)
        self.register_buffer("letters", torch.zeros(pieces, LONGEST, dtype=torch.uint8))

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the mean vector of each sentence's n-grams, [N, d]; zero if it has none."""
        return bag_means(self.table.weight, *self.rows(tokens, lengths))

    def rows(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the row of each n-gram, sentence by sentence, and their counts, int64[N]."""
        sentence = torch.repeat_interleave(lengths, output_size=len(tokens))  # (T,)
        first = functional.pad(sentence.diff(), (1, 0), value=1) != 0  # a gap before each sentence
        letters = functional.pad(self.letters.index_select(0, tokens), (1, 0))  # (T, 1 + LONGEST)
        letters[:, 0] = first * GAP
        places = letters.flatten().nonzero()[:, 0]
        row = functional.pad(letters.flatten()[places].long(), (0, MOST), value=GAP)
        sentence = sentence[places // letters.shape[1]]  # of each letter
        filled, size = row != GAP, len(sentence)
        hashed, inside = row[:size], torch.ones_like(filled[:size])  # inside: gaps only at ends
        hashes, kept = [], []
        for more in range(1, MOST):  # letters after the first
            hashed = hashed * BASE + row[more : more + size]
            hashes.append(((hashed * MIX & POSITIVE) >> SHIFT) % self.table.num_embeddings)
            kept.append(inside if more > 1 else filled[:size] | filled[1 : 1 + size])
            inside = inside & filled[more : more + size]
        chosen = torch.stack(kept, 1)  # (letters, lengths)
        many = sum(part.long() for part in kept)  # a sum over a dimension takes ten times as long
        counts = torch.zeros_like(lengths).index_add_(0, sentence, many)
        return torch.stack(hashes, 1).masked_select(chosen), counts


def bag_means(table: Tensor, rows: Tensor, counts: Tensor) -> Tensor:
    """Return the means of counts[N] successive rows of a table each, [N, d]; zeros for none."""
    if table.device.type == "cpu":
        return _Means.apply(table, rows, counts)
    return functional.embedding_bag(rows, table, counts.cumsum(0) - counts, mode="mean")


class _Means(torch.autograd.Function):
    """Computes `bag_means` on a CPU; its gradient, sums over bags, takes half of PyTorch's time."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor, counts: Tensor) -> Tensor:
        ctx.save_for_backward(rows, counts)
        ctx.size = len(table)
        return functional.embedding_bag(rows, table, counts.cumsum(0) - counts, mode="mean")

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        rows, counts = ctx.saved_tensors
        uses = rows.new_zeros(ctx.size).scatter_add_(0, rows, torch.ones_like(rows))
        order = rows.int().argsort(stable=True)  # of 32 bits, which sort in half the time
        bags = torch.repeat_interleave(counts, output_size=len(rows))[order]
        grad = grad / counts.clamp(min=1)[:, None]  # (N, d)
        return functional.embedding_bag(bags, grad, uses.cumsum(0) - uses, mode="sum"), None, None
