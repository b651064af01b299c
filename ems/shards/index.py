"""The list of an experiment's shards by role, beside them: index.json.

One file for the trainer to read and for the workflow to depend on: a training job with a thousand
inputs costs the scheduler more than many a stage, each time that it looks for a job to start.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import read_json, sha256_file, write_json
from ems.shapes import BELOW, TEXT, listing, mapping, record

TRAIN = "train"  # the role without which there is no index
INDEX = mapping(mapping(TEXT, BELOW)) | record({TRAIN: mapping(TEXT, BELOW, least=1)})
FOLDER = record({}, {"shards": mapping(TEXT, BELOW)})  # of the manifest of a folder of shards
LANGUAGES = record({"languages": listing(TEXT, least=1)})


def write_index(folders: dict[str, list[Path]], out: Path) -> int:
    """Write role -> {shard, as seen from the folder of `out`: sha256 of its manifest} for the
    shards in some folders; return their number. Raises `EmsError` for a folder without a manifest,
    and when there is not one shard to train on.
    """
    shards = {role: [s for f in each for s in shards_in(f)] for role, each in folders.items()}
    if not shards[TRAIN]:
        listed = ", ".join(map(str, folders[TRAIN])) or "no folder"
        raise EmsError(
            f"{out}: expected shards to train on, found no pair of sentences in {listed}"
        )
    write_json(out, {role: _entries(each, out.parent) for role, each in shards.items()})
    return sum(map(len, shards.values()))


def is_shards(folder: Path) -> bool:
    """Whether a folder holds the shards of a corpus and language pair, and nothing else."""
    try:
        listed = read_json(folder / "manifest.json", FOLDER).get("shards")
    except EmsError:
        return False
    names = {path.name for path in folder.iterdir()} - {"manifest.json"}
    return listed is not None and names <= listed.keys()


def shards_in(folder: Path) -> list[Path]:
    """The shards of a corpus and language pair, in their order; a shard's folder is one shard.

    Raises `EmsError` when there is no manifest, or the shards are not those that it lists.
    """
    _check_manifest(folder)
    listed = read_json(folder / "manifest.json", FOLDER).get("shards")
    if listed is None:
        return [folder]
    for name, sha256 in listed.items():
        _check_manifest(folder / name)
        if sha256_file(folder / name / "manifest.json") != sha256:
            raise Damaged(folder / name, f"not the shard that {folder / 'manifest.json'} lists")
    return [folder / name for name in sorted(listed)]


def shards_of(folders: list[Path], languages: Sequence[str]) -> list[Path]:
    """The shards that hold pairs of these languages only."""
    return [
        folder
        for folder in folders
        if set(read_json(folder / "manifest.json", LANGUAGES)["languages"]) <= set(languages)
    ]


def _check_manifest(folder: Path) -> None:
    if not (folder / "manifest.json").is_file():
        raise Damaged(folder, "no shard (it has no manifest.json)")


def _entries(shards: list[Path], root: Path) -> dict[str, str]:
    return {_below(s, root): sha256_file(s / "manifest.json") for s in shards}


def _below(shard: Path, root: Path) -> str:
    name = os.path.relpath(shard, root)
    if name.startswith(os.pardir):
        raise EmsError(f"{shard}: expected shards below {root}, the folder of the index; move one")
    return name


def read_index(path: Path) -> dict[str, list[Path]]:
    """Role -> shard folders. Raises `Damaged` for a shard that is not the one listed.

    Where nothing is of a folder, the list itself is what is made again: its names may be wrong.
    """
    index = read_json(path, INDEX)
    for entries in index.values():
        for name, sha256 in entries.items():
            shard = path.parent / name
            manifest = shard / "manifest.json"
            if not manifest.is_file() or sha256_file(manifest) != sha256:
                if shard.parent.is_dir():
                    raise Damaged(shard, f"not there, or not the shard that {path} lists")
                raise Damaged(path, f"lists {shard}, which is not there")
    return {role: [path.parent / name for name in entries] for role, entries in index.items()}
