"""The list of an experiment's shards by role, beside them: index.json.

The trainer reads this one file and the workflow depends on it: a job with a thousand inputs costs
Snakemake's scheduler more than many a stage does.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ems.base.errors import Damaged, EmsError
from ems.base.files import read_json, sha256_file, write_json
from ems.base.schema import Below, Count, NonBlank, Record

TRAIN = "train"  # the role without which there is no index
MANIFEST = "manifest.json"
PAIRS = "pairs.npy"  # of a folder of mined pairs, beside its manifest
LIST = "pairs.json"  # of a folder with a folder of shards for each language pair
Sums = dict[Below, NonBlank]  # shard, or language pair -> SHA-256 of its manifest


class FolderManifest(Record):
    """The manifest of the shards of a corpus and language pair; that of a shard has no `shards`."""

    shards: Sums | None = None


class Spoken(Record):
    languages: Annotated[list[NonBlank], Field(min_length=1)]


class MinedManifest(Record):
    languages: Annotated[list[NonBlank], Field(min_length=2)]
    pairs: dict[str, Count]
    sha256: NonBlank
    shards: NonBlank
    vocabulary_sha256: NonBlank


def write_index(folders: dict[str, list[Path]], out: Path) -> int:
    """Write role -> {shard below the folder of `out`: sha256 of its manifest}; return their number.

    Raises `EmsError` for a folder without a manifest, and if there is no shard to train on.
    """
    index: dict[str, dict[str, str]] = {}
    for role, each in folders.items():
        index[role] = {}
        for shard in [shard for folder in each for shard in shards_in(folder)]:
            name = os.path.relpath(shard, out.parent)
            if name.startswith(os.pardir):
                raise EmsError(
                    f"{shard}: expected shards below {out.parent}, the folder of the index; move "
                    "one"
                )
            index[role][name] = sha256_file(shard / MANIFEST)
    if not index[TRAIN]:
        listed = ", ".join(map(str, folders[TRAIN])) or "no folder"
        raise EmsError(
            f"{out}: expected shards to train on, found no pair of sentences in {listed}"
        )
    write_json(out, index)
    return sum(map(len, index.values()))


def read_index(path: Path) -> dict[str, list[Path]]:
    """Return role -> shard folders. Raises `Damaged` for a shard that is not as listed."""
    index = read_json(path, dict[str, Sums])
    if not index.get(TRAIN):
        raise Damaged(path, f"expected shards to train on under `{TRAIN}`, found none")
    for shard in (path.parent / name for entries in index.values() for name in entries):
        if not shard.parent.is_dir():
            raise Damaged(path, f"lists {shard}, which is not there")  # its names may be wrong
    return {role: _listed(path, entries) for role, entries in index.items()}


def _listed(path: Path, entries: dict[str, str]) -> list[Path]:
    """Return the folders that a file lists. Raises `Damaged` for one that is not as listed."""
    folders = [path.parent / name for name in entries]
    for folder, sha256 in zip(folders, entries.values(), strict=True):
        manifest = folder / MANIFEST
        if not manifest.is_file() or sha256_file(manifest) != sha256:
            raise Damaged(folder, f"not there, or not the shard that {path} lists")
    return folders


def _read(path: Path, of: Any) -> Any:
    try:
        return read_json(path, of)
    except EmsError:
        return None


def is_shards(folder: Path) -> bool:
    """True if a folder holds the shards of a corpus and language pair, and nothing else."""
    manifest = _read(folder / MANIFEST, FolderManifest)
    if manifest is None or manifest.shards is None:
        return False
    return {path.name for path in folder.iterdir()} <= {MANIFEST, *manifest.shards}


def is_several(folder: Path) -> bool:
    """True if a folder holds folders of shards and their list, and nothing else."""
    listed = _read(folder / LIST, Sums)
    if listed is None:
        return False
    others = [path for path in folder.iterdir() if path.name != LIST]
    return all(path.name in listed and is_shards(path) for path in others)


def holds_shards(folder: Path) -> bool:
    """True for what `ems shards` writes: shards of one language pair, or of several."""
    return is_shards(folder) or is_several(folder)


def is_mined(folder: Path) -> bool:
    """True if a folder holds mined pairs, and nothing else."""
    manifest = _read(folder / MANIFEST, MinedManifest)
    return bool(manifest) and {path.name for path in folder.iterdir()} <= {PAIRS, MANIFEST}


def shards_in(folder: Path) -> list[Path]:
    """Return the shards of a folder in order; of a shard, itself. Raises `EmsError` for others."""
    if not (folder / MANIFEST).is_file():
        raise Damaged(folder, f"no shard (it has no {MANIFEST})")
    entries = read_json(folder / MANIFEST, FolderManifest).shards
    return [folder] if entries is None else sorted(_listed(folder / MANIFEST, entries))


def shards_of(folders: list[Path], languages: Sequence[str], sides: int = 2) -> list[Path]:
    """Return the shards that hold pairs of these languages only, or documents (one side)."""
    held = {folder: {*read_json(folder / MANIFEST, Spoken).languages} for folder in folders}
    return [f for f, codes in held.items() if len(codes) == sides and codes <= {*languages}]


def folders_in(folder: Path) -> list[Path]:
    """Return the folders of shards that a folder of several lists; any other folder itself."""
    listed = folder / LIST
    return _listed(listed, read_json(listed, Sums)) if listed.is_file() else [folder]
