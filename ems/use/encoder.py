"""The Python interface: `Encoder`, and `score` and `mine` for sentences in memory."""

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

COSINE = "absolute"  # the margin without neighbours


class Encoder:
    """Turns sentences into vectors with a trained model.

        encoder = Encoder("exports/ems")
        encoder.encode(["Hallo", "Hello"], normalise=True)  # float32[2, d]

    `model` is a model folder, a folder written by `ems export`, or the folder or hub name of a
    sentence-transformers model (which needs that package). `device` is auto, cpu or cuda.
    `precision` is float32; EMS models also take bfloat16 and, on a CPU, int8, which are faster on
    hardware that supports them. Raises `EmsError` for a model that cannot be loaded.
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
            raise EmsError(f"{model}: precision {precision} is for EMS models only; choose float32")
        own_device = None if device == "auto" else device
        self._lines = SentenceTransformersEncoder(self.model, own_device)

    @property
    def identity(self) -> str:
        """Hash of everything that the vectors depend on."""
        return self._lines.identity

    @property
    def languages(self) -> list[str]:
        """Languages that the model was trained for; [] if it is not an EMS model."""
        return sorted(getattr(self._lines, "segmenters", ()))

    def encode(
        self,
        lines: Sequence[str],
        language: str | None = None,
        normalise: bool = False,
        half: bool = False,
        dimensions: int = 0,
        progress: Any = None,
    ) -> np.ndarray:
        """Encode lines to vectors, float32[len(lines), d], in the same order.

        `language` is required only by a model that segments its languages differently.
        `dimensions` keeps the first numbers of each vector (0: all), for models trained with
        Matryoshka prefixes. `normalise` then scales vectors to length 1, except zero vectors.
        `half` returns float16. `progress.add(count)` is called as lines are finished. Raises
        `EmsError` for a missing or unknown language, and for too many dimensions.
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
        """Count the tokens of each line, including tokens after the last one read."""
        return self._lines.token_counts(list(lines), language)

    def width(self, language: str | None = None, dimensions: int = 0) -> int:
        """Return the dimension d of the vectors."""
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
    """Score the similarity of the sentences of each pair, float64[N].

    The margin `absolute` is the cosine. `ratio` and `distance` relate it to the mean cosine of both
    sentences with their `neighbours` nearest sentences on the other side. An empty sentence has
    cosine 0 with all others. `encoder` is an `Encoder` or the model of one. Raises `EmsError` for
    sides of different lengths.
    """
    if len(source) != len(target):
        raise EmsError(
            f"expected sides of equal length, found {len(source):,} and {len(target):,} sentences"
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
    """Find likely translation pairs in two texts, the best first.

    The result has the rows `first` of `source` and `second` of `target`, int64[P], and the margin
    `score`, float64[P] (Artetxe and Schwenk, ACL 2019), which is at least `threshold`.
    `one_to_one` uses each sentence at most once. Empty sentences are in no pair. The search is
    exact, so its time grows with len(source) x len(target).
    """
    _check(margin)
    first, second = _vectors(encoder, (source, source_language), (target, target_language))
    if not (len(first) and len(second)):
        return Mined(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    pairs = pairs_of(*nearest(first, second, neighbours, what=""), margin, one_to_one)
    return kept_pairs(pairs, threshold, first.any(axis=1), second.any(axis=1))


def kept_pairs(pairs: Mined, threshold: float, first: np.ndarray, second: np.ndarray) -> Mined:
    """Keep pairs that reach the threshold and have text (bool[N], bool[M]) on both sides."""
    kept = (pairs.score >= threshold) & first[pairs.first] & second[pairs.second]
    return Mined(pairs.first[kept], pairs.second[kept], pairs.score[kept])


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Multiply rows of length 1, first[N, d] with second[N, d]: float32[N]."""
    return np.einsum("nd,nd->n", first, second)


def _check(margin: str) -> None:
    if margin not in MARGINS:
        raise EmsError(f"margin: found {margin!r}; allowed values: {', '.join(MARGINS)}")


def _vectors(
    encoder: Encoder | str | Path, *sides: tuple[Sequence[str], str | None]
) -> list[np.ndarray]:
    """Encode both sides to vectors of length 1, with zeros for empty sentences."""
    model = encoder if isinstance(encoder, Encoder) else Encoder(encoder)
    vectors = [model.encode(lines, language, normalise=True) for lines, language in sides]
    for own, (lines, _) in zip(vectors, sides, strict=True):
        own[[not line.strip() for line in lines]] = 0
    return vectors
