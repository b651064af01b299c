"""An encoder that needs no training, to show what a score is worth."""

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from ems.progress import Progress

FEATURES = 1 << 12  # hash buckets of character n-grams; classifiers learn on them too


class CharNgramEncoder:
    """Hashed character n-grams (1 to 4, within words) of a line, lower case, without accents.

    A feature says whether an n-gram occurs, not how often: counts of single letters would outweigh
    all else (docs/log.md).
    """

    def __init__(self) -> None:
        self.vectorizer = HashingVectorizer(
            analyzer="char_wb",
            ngram_range=(1, 4),
            n_features=FEATURES,
            binary=True,
            strip_accents="unicode",
            alternate_sign=False,
        )

    def encode(self, lines: list[str], language: str, what: str = "encode") -> np.ndarray:
        """Return float32[len(lines), FEATURES]; a line without any character is a zero row."""
        progress = Progress(f"{what} {language}", len(lines), "sentences")
        vectors = self.vectorizer.transform(lines).toarray().astype(np.float32)
        progress.add(len(lines))
        progress.close()
        return vectors
