"""Check a model folder: its files against their checksums, its weights, the vector of a line."""

from pathlib import Path

import numpy as np

from ems.base.errors import Damaged, NotFinite
from ems.base.files import sha256_file
from ems.base.progress import Progress
from ems.model.folder import checksums
from ems.model.static import as_float32
from ems.model.weights import mapped
from ems.use.encoder import Encoder

BLOCK = 1 << 22  # numbers in memory at once


def check_model(folder: Path) -> int:
    """Return the number of files of a trained or exported model, all of which are whole. Raises
    `Damaged` for a file with another checksum or with a weight that is not finite, and `EmsError`
    if the model cannot encode.
    """
    sums = checksums(folder)
    sizes = {name: (folder / name).stat().st_size for name in sums if (folder / name).is_file()}
    progress = Progress(f"check {folder}", sum(sizes.values()), "bytes")
    for name in progress.over(sums, sizes.__getitem__):
        path = folder / name
        if sha256_file(path) != sums[name]:
            raise Damaged(path, "its SHA-256 is not the one that the folder lists")
        if path.suffix == ".safetensors":
            _check_weights(path)
    encoder = Encoder(folder, "cpu")
    if not np.isfinite(encoder.vectors(["a"], next(iter(encoder.languages), None))).all():
        raise NotFinite(f"{folder}: the vector of a line is not finite; fetch the model again")
    return len(sums)


def _check_weights(path: Path) -> None:
    for name, weights in mapped(path, None).items():
        numbers = weights.reshape(-1)
        for start in range(0, len(numbers), BLOCK):
            if not np.isfinite(as_float32(numbers[start : start + BLOCK])).all():
                raise Damaged(path, f"{name}: expected finite numbers, found others")
