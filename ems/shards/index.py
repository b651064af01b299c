"""The list of an experiment's shards by role, beside them: index.json.

One file for the trainer to read and for the workflow to depend on: a training job with a thousand
inputs costs the scheduler more than many a stage, each time that it looks for a job to start.
"""

from collections.abc import Sequence
from pathlib import Path

from ems.errors import EmsError
from ems.files import read_json, sha256_file, write_json


def write_index(folders: dict[str, list[Path]], out: Path) -> int:
    """Write role -> {shard, as seen from the folder of `out`: sha256 of its manifest} for the
    shards in some folders; return their number. Raises `EmsError` for a folder without a manifest.
    """
    shards = {role: [s for f in each for s in shards_in(f)] for role, each in folders.items()}
    write_json(out, {role: _entries(each, out.parent) for role, each in shards.items()})
    return sum(map(len, shards.values()))


def is_shards(folder: Path) -> bool:
    """Whether a folder holds the shards of a corpus and language pair, and nothing else."""
    try:
        manifest = read_json(folder / "manifest.json")
    except EmsError:
        return False
    names = {path.name for path in folder.iterdir()} - {"manifest.json"}
    listed = manifest.get("shards") if isinstance(manifest, dict) else None
    return isinstance(listed, dict) and names <= listed.keys()


def shards_in(folder: Path) -> list[Path]:
    """The shards of a corpus and language pair, in their order; a shard's folder is one shard.

    Raises `EmsError` when there is no manifest, or the shards are not those that it lists.
    """
    _check_manifest(folder)
    listed = read_json(folder / "manifest.json").get("shards")
    if listed is None:
        return [folder]
    for name, sha256 in listed.items():
        _check_manifest(folder / name)
        if sha256_file(folder / name / "manifest.json") != sha256:
            raise EmsError(
                f"{folder / name}: not the shard that {folder / 'manifest.json'} lists; delete "
                f"{folder} and run again"
            )
    return [folder / name for name in sorted(listed)]


def shards_of(folders: list[Path], languages: Sequence[str]) -> list[Path]:
    """The shards that hold pairs of these languages only."""
    return [
        folder
        for folder in folders
        if set(read_json(folder / "manifest.json")["languages"]) <= set(languages)
    ]


def _check_manifest(folder: Path) -> None:
    if not (folder / "manifest.json").is_file():
        raise EmsError(f"{folder}: no shard (it has no manifest.json); run the shards stage")


def _entries(shards: list[Path], root: Path) -> dict[str, str]:
    return {str(s.relative_to(root)): sha256_file(s / "manifest.json") for s in shards}


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
