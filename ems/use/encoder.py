"""The public encoder: sentences to vectors with any model that we know how to load."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ems.base.errors import EmsError
from ems.base.files import EXPORTED
from ems.model.encode import SentenceEncoder, unit_rows
from ems.model.folder import DESCRIPTION, is_ours


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
        self.model = str(model)
        self._lines: Any
        if is_ours(Path(model)):
            self._lines = SentenceEncoder(Path(model), device, precision)
        else:
            self._lines = _peer(self.model, device, precision)
        self._width = 0

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
        if dimensions > vectors.shape[1] and len(lines):
            most = vectors.shape[1]
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


def _peer(model: str, device: str, precision: str) -> Any:
    """Return the encoder of a sentence-transformers model."""
    from ems.bench.peers import SentenceTransformersEncoder

    folder = Path(model)
    name = not folder.exists() and re.fullmatch("[^/.~][^/]*/[^/]+", model)  # of the hub
    if not name and not (folder / "modules.json").is_file():
        found = "found none of them" if folder.exists() else "there is no such folder"
        raise EmsError(
            f"{model}: expected a model folder with {DESCRIPTION}, {EXPORTED} or modules.json, or "
            f"a name like sentence-transformers/LaBSE; {found}"
        )
    if precision != "float32":
        raise EmsError(f"{model}: precision {precision} is for our own models; say float32")
    return SentenceTransformersEncoder(model, None if device == "auto" else device)
