"""A trained encoder and character n-grams as one vector (kind `fused`).

The vector of a sentence is [u / |u| ; w g / |g|]: u the embedding, g its n-grams, and
w = weight (n / 100)^power for n n-grams. The cosine of two sentences is then the sum of both
cosines, the second times w w', divided by the lengths of both vectors. Long sentences share more
names and numbers than short ones, so their n-grams say more.
"""

from pathlib import Path

import numpy as np

from ems.base.batches import BATCH
from ems.base.errors import Damaged
from ems.base.files import sha256_file
from ems.model.char_ngrams.encoder import NgramEncoder
from ems.model.char_ngrams.folder import DESCRIPTION, kind_of, read_description
from ems.model.encode import SentenceEncoder, unit_rows

COMMON = 100  # n-grams of a sentence whose n-grams have the weight itself


def weights_of(counts: np.ndarray, weight: float, power: float) -> np.ndarray:
    """Return w of sentences by their numbers of n-grams, float32[N]."""
    return (weight * (counts / COMMON) ** power).astype(np.float32)


class FusedEncoder:
    """A system of kind fused; the folder of its trained encoder lies where model.json says.

    Raises `Damaged` for a folder that is not whole, or whose encoder was trained again.
    """

    def __init__(self, folder: Path) -> None:
        about = read_description(folder)
        trained = folder / about["of"]["model"]
        if sha256_file(trained / DESCRIPTION) != about["of"]["sha256"]:
            raise Damaged(
                trained / DESCRIPTION, f"not the model that {folder} was made with; make that again"
            )
        self.trained, self.ngrams = SentenceEncoder(trained), NgramEncoder.of(folder)
        self.weight, self.power = about["weight"], about["power"]

    def encode(self, lines: list[str], language: str, what: str = "encode") -> np.ndarray:
        """Return float32[len(lines), d + buckets]."""
        embeddings = unit_rows(self.trained.encode(lines, language, what))
        width = embeddings.shape[1]
        buckets = self.ngrams.settings.buckets
        result = np.empty((len(lines), width + buckets), np.float32)
        result[:, :width] = embeddings
        for start in range(0, len(lines), BATCH):
            at = slice(start, start + BATCH)
            vectors, counts = self.ngrams.vectors(lines[at])
            weights = weights_of(counts, self.weight, self.power)
            result[at, width:] = weights[:, None] * unit_rows(vectors.toarray())
        return result

    def token_counts(self, lines: list[str], language: str) -> list[int]:
        """Count the tokens of each line as the trained encoder does."""
        return self.trained.token_counts(lines, language)


def opened(folder: Path) -> SentenceEncoder | NgramEncoder | FusedEncoder:
    """Return the encoder of a model folder of any kind."""
    match kind_of(folder):
        case "char-ngram":
            return NgramEncoder.of(folder)
        case "fused":
            return FusedEncoder(folder)
    return SentenceEncoder(folder)
