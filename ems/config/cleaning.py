"""The files that filters of `clean` read, whose content counts as settings do."""

from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import EXPORTED, SUMS, sha256_file
from ems.base.schema import Json
from ems.config.text import CleanSettings

DESCRIPTION = "model.json"  # has the SHA-256 of the model's other files, as SUMS of an exported one


def filter_contents(clean: CleanSettings) -> Json:
    """Return the SHA-256 of the files that say what filters do, by path; nothing without any.

    Raises `EmsError` for a file that is not there.
    """
    paths = model_files(clean.similarity.model) if clean.similarity else []
    for at, command in enumerate(clean.commands):
        path = Path(command.filter)
        if not path.is_file():
            raise EmsError(f"clean.commands.{at}.filter: {path}: there is no such file")
        paths.append(path)
    return {"filters": {str(path): sha256_file(path) for path in paths}} if paths else {}


def model_files(model: str) -> list[Path]:
    """Return the files that tell a model from all others. Raises `EmsError` for another folder."""
    for names in ((DESCRIPTION,), (EXPORTED, SUMS)):
        paths = [Path(model, name) for name in names]
        if all(path.is_file() for path in paths):
            return paths
    found = "found none of them" if Path(model).is_dir() else "there is no such folder"
    raise EmsError(
        f"clean.similarity.model: {model}: expected a model folder with {DESCRIPTION}, or one with "
        f"{EXPORTED} that `ems export` wrote; {found}: train and export it first, with another "
        "experiment"
    )
