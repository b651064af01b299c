"""Lines -> vectors of their character n-grams: an encoder that needs no training.

What two sentences of different languages share in their spelling are names, numbers and cognates.
"""

from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file
from scipy.sparse import csr_array

from ems.base.batches import BATCH
from ems.base.errors import Damaged
from ems.base.files import NGRAMS, sha256_file
from ems.base.progress import Progress
from ems.base.schema import checked
from ems.config.ngrams import NgramSettings
from ems.model.char_ngrams.features import PLACES, features, hashing
from ems.model.char_ngrams.folder import DESCRIPTION, read_description


class NgramEncoder:
    """Hashed n-grams of lines; `weights` are those of their places, float32[PLACES]: 1 if None."""

    def __init__(self, settings: NgramSettings, weights: np.ndarray | None = None) -> None:
        self.settings = settings
        weights = np.ones(PLACES, np.float32) if weights is None else weights
        self._hashing = hashing(weights, settings.buckets)

    @classmethod
    def of(cls, folder: Path) -> "NgramEncoder":
        """Return the encoder of a folder. Raises `Damaged` if the folder is not whole."""
        about = read_description(folder)
        where = f"{folder / DESCRIPTION}: ngrams"
        return cls(checked(NgramSettings, about["ngrams"], where), _read_weights(folder, about))

    def vectors(self, lines: list[str]) -> tuple[csr_array, np.ndarray]:
        """Return the vectors float32[N, buckets] of lines, and how many n-grams each has, [N]."""
        found = features(lines, self.settings)
        return found @ self._hashing, np.diff(found.indptr)

    def encode(self, lines: list[str], language: str, what: str = "encode") -> np.ndarray:
        """Return float32[len(lines), buckets]; a line without any visible character is zero."""
        progress = Progress(f"{what} {language}", len(lines), "sentences")
        result = np.empty((len(lines), self.settings.buckets), np.float32)
        for start in range(0, len(lines), BATCH):
            part = lines[start : start + BATCH]
            self.vectors(part)[0].toarray(out=result[start : start + BATCH])
            progress.add(len(part))
        progress.close()
        return result


def _read_weights(folder: Path, about: dict[str, Any]) -> np.ndarray:
    """Return the weights of a folder, float32[PLACES]. Raises `Damaged` if they are others."""
    path = folder / NGRAMS
    if sha256_file(path) != about["sha256"][NGRAMS]:
        raise Damaged(path, "its sha256 is not the one in model.json beside it")
    try:
        weights = load_file(path)["weights"]
    except (KeyError, OSError, SafetensorError) as error:
        raise Damaged(path, f"no weights of n-grams ({error})") from None
    if weights.shape != (PLACES,) or weights.dtype != np.float32:
        raise Damaged(path, f"expected float32[{PLACES}], found {weights.dtype}{weights.shape}")
    return weights
