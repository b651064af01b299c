"""The list of an experiment's shards by role, beside them: index.json.

The trainer reads this one file and the workflow depends on it: a job with a thousand inputs costs
Snakemake's scheduler more than many a stage does.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ems.base.errors import Damaged, EmsError
from ems.base.files import read_json, sha256_file, write_json
from ems.base.schema import Below, Count, Record, Text

TRAIN = "train"  # the role without which there is no index
MANIFEST = "manifest.json"
PAIRS = "pairs.npy"  # of a folder of mined pairs, beside its manifest
LIST = "pairs.json"  # of a folder with a folder of shards for each language pair
Sums = dict[Below, Text]  # shard, or language pair -> SHA-256 of its manifest


class FolderManifest(Record):
    """The manifest of the shards of a corpus and language pair; that of a shard has no `shards`."""

    shards: Sums | None = None


class Spoken(Record):
    """The languages of a manifest of either kind."""

    languages: Annotated[list[Text], Field(min_length=1)]


class MinedManifest(Record):
    """The manifest of a folder of mined pairs."""

    languages: Annotated[list[Text], Field(min_length=2)]
    pairs: dict[str, Count]
    sha256: Text
    shards: Text
    vocabulary_sha256: Text


def write_index(folders: dict[str, list[Path]], out: Path) -> int:
    """Write role -> {shard, as seen from the folder of `out`: sha256 of its manifest}.

    Takes the folders of shards of each role and returns the number of shards. Raises `EmsError` for
    a folder without a manifest, and when there is not one shard to train on.
    """
    shards = {role: [s for f in each for s in shards_in(f)] for role, each in folders.items()}
    if not shards[TRAIN]:
        listed = ", ".join(map(str, folders[TRAIN])) or "no folder"
        raise EmsError(
            f"{out}: expected shards to train on, found no pair of sentences in {listed}"
        )
    index = {
        role: {_below(shard, out.parent): sha256_file(shard / MANIFEST) for shard in each}
        for role, each in shards.items()
    }
    write_json(out, index)
    return sum(map(len, shards.values()))


def _below(shard: Path, root: Path) -> str:
    name = os.path.relpath(shard, root)
    if name.startswith(os.pardir):
        raise EmsError(f"{shard}: expected shards below {root}, the folder of the index; move one")
    return name


def read_index(path: Path) -> dict[str, list[Path]]:
    """Return role -> shard folders. Raises `Damaged` for a shard that is not the one listed.

    Where nothing is of a folder, the list itself is what is made again: its names may be wrong.
    """
    index = read_json(path, dict[str, Sums])
    if not index.get(TRAIN):
        raise Damaged(path, f"expected shards to train on under `{TRAIN}`, found none")
    for entries in index.values():
        for name, sha256 in entries.items():
            shard = path.parent / name
            if _is_listed(shard, sha256):
                continue
            if shard.parent.is_dir():
                raise Damaged(shard, f"not there, or not the shard that {path} lists")
            raise Damaged(path, f"lists {shard}, which is not there")
    return {role: [path.parent / name for name in entries] for role, entries in index.items()}


def _is_listed(shard: Path, sha256: str) -> bool:
    return (shard / MANIFEST).is_file() and sha256_file(shard / MANIFEST) == sha256


def is_shards(folder: Path) -> bool:
    """Return whether a folder holds the shards of a corpus and language pair, and nothing else."""
    try:
        listed = read_json(folder / MANIFEST, FolderManifest).shards
    except EmsError:
        return False
    names = {path.name for path in folder.iterdir()} - {MANIFEST}
    return listed is not None and names <= listed.keys()


def is_several(folder: Path) -> bool:
    """Return whether a folder holds folders of shards and their list, and nothing else."""
    try:
        listed = read_json(folder / LIST, Sums)
    except EmsError:
        return False
    others = [path for path in folder.iterdir() if path.name != LIST]
    return all(path.name in listed and path.is_dir() and is_shards(path) for path in others)


def holds_shards(folder: Path) -> bool:
    """Return whether `ems shards` wrote a folder: of one language pair, or of several."""
    return is_shards(folder) or is_several(folder)


def is_mined(folder: Path) -> bool:
    """Return whether a folder holds mined pairs, and nothing else."""
    try:
        read_json(folder / MANIFEST, MinedManifest)
    except EmsError:
        return False
    return {path.name for path in folder.iterdir()} <= {PAIRS, MANIFEST}


def shards_in(folder: Path) -> list[Path]:
    """Return the shards of a corpus and language pair, in their order; of a shard, itself.

    Raises `EmsError` when there is no manifest, or the shards are not those that it lists.
    """
    _check_manifest(folder)
    listed = read_json(folder / MANIFEST, FolderManifest).shards
    if listed is None:
        return [folder]
    for name, sha256 in listed.items():
        _check_manifest(folder / name)
        if not _is_listed(folder / name, sha256):
            raise Damaged(folder / name, f"not the shard that {folder / MANIFEST} lists")
    return [folder / name for name in sorted(listed)]


def _check_manifest(folder: Path) -> None:
    if not (folder / MANIFEST).is_file():
        raise Damaged(folder, f"no shard (it has no {MANIFEST})")


def shards_of(folders: list[Path], languages: Sequence[str], sides: int = 2) -> list[Path]:
    """Return the shards that hold pairs of these languages only, or documents (one side)."""
    held = {folder: read_json(folder / MANIFEST, Spoken).languages for folder in folders}
    return [
        folder
        for folder, codes in held.items()
        if len(codes) == sides and set(codes) <= set(languages)
    ]


def folders_in(folder: Path) -> list[Path]:
    """Return the folders of shards that a folder of several lists; any other folder itself.

    Raises `Damaged` for one that is not as it was listed.
    """
    if not (folder / LIST).is_file():
        return [folder]
    listed = read_json(folder / LIST, Sums)
    for name, sha256 in listed.items():
        if not _is_listed(folder / name, sha256):
            raise Damaged(folder / name, f"not there, or not the shards that {folder / LIST} lists")
    return [folder / name for name in listed]
