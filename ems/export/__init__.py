"""Export a trained encoder for sentence-transformers, transformers and onnxruntime."""

from pathlib import Path

from ems.base.files import EXPORTED, SUMS


def is_export(folder: Path) -> bool:
    """True if `ems export` wrote the folder, so that it may be replaced."""
    return (folder / EXPORTED).is_file() and (folder / SUMS).is_file()
