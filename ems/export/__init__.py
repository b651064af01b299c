"""A trained encoder as a folder that sentence-transformers, transformers and onnxruntime load."""

from pathlib import Path

from ems.base.files import EXPORTED, SUMS


def is_export(folder: Path) -> bool:
    """Return whether a folder was written by `ems export`, so that it may be replaced."""
    return (folder / EXPORTED).is_file() and (folder / SUMS).is_file()
