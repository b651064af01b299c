"""The interface of Python: `Encoder`, and `score` and `mine` for sentences in memory."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ems.base.errors import EmsError
from ems.base.files import EXPORTED
from ems.bench.margin import MARGINS, Mined, pairs_of, scores_of
from ems.bench.nearest import nearest
from ems.model.encode import SentenceEncoder, unit_rows
from ems.model.folder import DESCRIPTION

COSINE = "absolute"  # the margin that is the cosine itself


class Encoder:
    """A trained model that turns sentences into vectors.

        encoder = Encoder("exports/ems")
        encoder.encode(["Hallo", "Hello"], normalise=True)  # float32[2, d]

    `model` is a model folder of ours, a folder that `ems export` wrote, or a folder or a name of
    sentence-transformers, which must then be installed. `device` is auto, cpu or cuda; `precision`
    is float32, or of our models bfloat16 or int8 (on a CPU), which are faster where it has them.
    Raises `EmsError` for a model that cannot be loaded.
    """

    def __init__(self, model: str | Path, device: str = "auto", precision: str = "float32") -> None:
        self.model, folder = str(model), Path(model)
        self._lines: Any
        if any((folder / name).is_file() for name in (DESCRIPTION, EXPORTED)):
            self._lines = SentenceEncoder(folder, device, precision)
            return
        from ems.bench.peers import SentenceTransformersEncoder

        of_hub = not folder.exists() and re.fullmatch("[^/.~][^/]*/[^/]+", self.model)
        if not of_hub and not (folder / "modules.json").is_file():
            found = "found none of them" if folder.exists() else "there is no such folder"
            raise EmsError(
                f"{model}: expected a model folder with {DESCRIPTION}, {EXPORTED} or modules.json, "
                f"or a name like sentence-transformers/LaBSE; {found}"
            )
        if precision != "float32":
            raise EmsError(f"{model}: precision {precision} is for our own models; say float32")
        own_device = None if device == "auto" else device
        self._lines = SentenceTransformersEncoder(self.model, own_device)

    @property
    def identity(self) -> str:
        """Hash of all that vectors depend on."""
        return self._lines.identity

    def encode(
        self,
        lines: Sequence[str],
        language: str | None = None,
        normalise: bool = False,
        half: bool = False,
        dimensions: int = 0,
        progress: Any = None,
    ) -> np.ndarray:
        """Return a vector for each line, float32[len(lines), d], in their order.

        `language` is needed only by a model that treats its languages differently (segmenters).
        `dimensions` keeps the first so many numbers (0: all; for models trained with Matryoshka
        prefixes). `normalise` then makes each length 1, but leaves a vector of zeros. `half` gives
        float16. `progress` has a method `add` that is called with counts of finished lines. Raises
        `EmsError` for a language that is missing or unknown, and for too many dimensions.
        """
        vectors = self._lines.encode(list(lines), language, what="", progress=progress)
        most = vectors.shape[1]
        if dimensions > most and len(lines):
            raise EmsError(f"dimensions: expected at most {most} of {self.model}, got {dimensions}")
        vectors = vectors[:, : dimensions or None]
        if normalise:
            vectors = unit_rows(vectors)
        return vectors.astype(np.float16 if half else np.float32, copy=False)

    def token_counts(self, lines: Sequence[str], language: str | None = None) -> list[int]:
        """Count the tokens of each line, also those beyond what the model reads of a long one."""
        return self._lines.token_counts(list(lines), language)

    def width(self, language: str | None = None, dimensions: int = 0) -> int:
        """Return the numbers of a vector, d."""
        return self.encode(["a"], language, dimensions=dimensions).shape[1]


# --- pairs


def score(
    encoder: Encoder | str | Path,
    source: Sequence[str],
    target: Sequence[str],
    source_language: str | None = None,
    target_language: str | None = None,
    margin: str = COSINE,
    neighbours: int = 4,
) -> np.ndarray:
    """Return how alike the sentences of each pair are, float64[N].

    absolute: their cosine; ratio and distance: beside the mean cosine of both to their `neighbours`
    nearest sentences of the other side. A side without text has cosine 0 with all others. `encoder`
    is an `Encoder`, or what makes one. Raises `EmsError` for sides of different lengths.
    """
    if len(source) != len(target):
        raise EmsError(
            f"expected as many sentences on both sides, found {len(source):,} and {len(target):,}"
        )
    _check(margin)
    first, second = _vectors(encoder, (source, source_language), (target, target_language))
    similarity = cosines(first, second)
    if margin == COSINE or not len(first):
        return similarity.astype(np.float64)
    return scores_of(similarity, *nearest(first, second, neighbours, what=""), margin)


def mine(
    encoder: Encoder | str | Path,
    source: Sequence[str],
    target: Sequence[str],
    source_language: str | None = None,
    target_language: str | None = None,
    margin: str = "ratio",
    neighbours: int = 4,
    threshold: float = -np.inf,
    one_to_one: bool = True,
) -> Mined:
    """Return pairs of sentences of two texts that are probably translations, the best first.

    `first` and `second` are their places in `source` and `target`, int64[P], and `score` float64[P]
    is their margin (Artetxe and Schwenk, ACL 2019): at least `threshold`. With `one_to_one` each
    sentence is in one pair; one without text is in none. The search is exact: its time grows with
    len(source) x len(target).
    """
    _check(margin)
    first, second = _vectors(encoder, (source, source_language), (target, target_language))
    if not (len(first) and len(second)):
        return Mined(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    pairs = pairs_of(*nearest(first, second, neighbours, what=""), margin, one_to_one)
    return kept_pairs(pairs, threshold, first.any(axis=1), second.any(axis=1))


def kept_pairs(pairs: Mined, threshold: float, first: np.ndarray, second: np.ndarray) -> Mined:
    """Return the pairs that reach a threshold and have text, by first bool[N], second bool[M]."""
    kept = (pairs.score >= threshold) & first[pairs.first] & second[pairs.second]
    return Mined(pairs.first[kept], pairs.second[kept], pairs.score[kept])


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the products of rows of length 1 of first[N, d] and second[N, d], float32[N]."""
    return np.einsum("nd,nd->n", first, second)


def _check(margin: str) -> None:
    if margin not in MARGINS:
        raise EmsError(f"margin: found {margin!r}; allowed values: {', '.join(MARGINS)}")


def _vectors(
    encoder: Encoder | str | Path, *sides: tuple[Sequence[str], str | None]
) -> list[np.ndarray]:
    """Return vectors of length 1 of both sides, zeros for sentences without text."""
    model = encoder if isinstance(encoder, Encoder) else Encoder(encoder)
    vectors = [model.encode(lines, language, normalise=True) for lines, language in sides]
    for own, (lines, _) in zip(vectors, sides, strict=True):
        own[[not line.strip() for line in lines]] = 0
    return vectors
