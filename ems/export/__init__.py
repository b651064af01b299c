"""A trained encoder as a folder that sentence-transformers, transformers and onnxruntime load."""

from importlib.util import find_spec
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import EXPORTED, SUMS


def is_export(folder: Path) -> bool:
    """Return whether a folder was written by `ems export`, so that it may be replaced."""
    return (folder / EXPORTED).is_file() and (folder / SUMS).is_file()


def check_installed(*names: str) -> None:
    """Raise `EmsError` with the packages that are missing, by the names of their modules."""
    missing = [name for name in names if not _is_there(name)]
    if missing:
        raise EmsError(
            f"ems export needs {', '.join(missing)}; in the folder of this project: pip install "
            "'.[export]'"
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what it is a part of is missing
        return False
