"""A trained encoder as a folder that sentence-transformers, transformers and onnxruntime load."""

from pathlib import Path

OURS, SUMS = "ems.json", "SHA256SUMS"


def is_export(folder: Path) -> bool:
    """Return whether a folder was written by `ems export`, so that it may be replaced."""
    return (folder / OURS).is_file() and (folder / SUMS).is_file()
