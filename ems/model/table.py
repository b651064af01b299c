"""Wide vectors of pieces and of n-grams, whose mean is all or a part of a sentence embedding."""

from torch import Tensor, nn
from torch.nn import functional

from ems.model.ngrams import Ngrams

WEIGHT = 4  # of n-grams, of which there are about eight a piece; 1, 2 and 8 are worse (docs/log.md)


class Table(nn.Module):
    """A vector of each piece, and with `ngrams` rows of hashed n-grams too.

    No norm follows: the length of a vector is a weight that is learned, so that frequent pieces
    count little. No state a token is made, which is why it costs little.
    """

    def __init__(self, width: int, pieces: int, ngrams: int = 0) -> None:
        super().__init__()
        self.pieces = nn.Embedding(pieces, width)
        self.ngrams = Ngrams(ngrams, width, pieces) if ngrams else None

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the mean of the pieces, plus WEIGHT times that of the n-grams, [N, d].

        tokens[T] are packed, lengths[N] say how many are of each sentence.
        """
        starts = lengths.cumsum(0) - lengths
        means = functional.embedding_bag(tokens, self.pieces.weight, starts, mode="mean")
        if self.ngrams is None:
            return means
        return means + WEIGHT * self.ngrams(tokens, lengths)
