"""The list of an experiment's shards by role, beside them: index.json.

One file for the trainer to read and for the workflow to depend on: a training job with a thousand
inputs costs the scheduler more than many a stage, each time that it looks for a job to start.
"""

from pathlib import Path

from ems.errors import EmsError
from ems.files import read_json, sha256_file, write_json


def write_index(shards: dict[str, list[Path]], out: Path) -> None:
    """Write role -> {folder below that of `out`: sha256 of its manifest}. Raises `EmsError` for a
    folder without a manifest.
    """
    write_json(out, {role: _entries(folders, out.parent) for role, folders in shards.items()})


def _entries(folders: list[Path], root: Path) -> dict[str, str]:
    for folder in folders:
        if not (folder / "manifest.json").is_file():
            raise EmsError(f"{folder}: no shard (it has no manifest.json); run the shards stage")
    return {
        str(folder.relative_to(root)): sha256_file(folder / "manifest.json")
        for folder in folders
        if read_json(folder / "manifest.json")["pairs"]  # a part of a small file may be empty
    }


def read_index(path: Path) -> dict[str, list[Path]]:
    """Role -> shard folders. Raises `EmsError` for a shard that is not the one listed."""
    index = read_json(path)
    for entries in index.values():
        for name, sha256 in entries.items():
            manifest = path.parent / name / "manifest.json"
            if not manifest.is_file() or sha256_file(manifest) != sha256:
                raise EmsError(
                    f"{path}: {manifest.parent} is not there or not the shard that is listed; "
                    "run the shards stage again"
                )
    return {role: [path.parent / name for name in entries] for role, entries in index.items()}
