"""index.json, the list of an experiment's shards by role. The trainer and the workflow depend on it
alone: a job with a thousand inputs would keep Snakemake's scheduler busy for longer than a stage.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import read_json, sha256_file, write_json
from ems.base.records import Below, Bounds, Count, NonBlank, Record, only

TRAIN = "train"  # a role that every index has
MANIFEST = "manifest.json"
PAIRS = "pairs.npy"  # file of mined pairs, in the folder of their manifest
LIST = "pairs.json"  # list of a folder that has a folder of shards per language pair
Sums = dict[Below, NonBlank]  # shard or language pair -> SHA-256 of its manifest
FolderManifest = only("shards", Sums | None, None)  # of a folder of shards; of a shard: None
LanguageList = only("languages", Annotated[list[NonBlank], Bounds(min_length=1)])


class MinedManifest(Record):
    languages: Annotated[list[NonBlank], Bounds(min_length=2)]
    pairs: dict[str, Count]
    sha256: NonBlank
    shards: NonBlank
    vocabulary_sha256: NonBlank


def write_index(folders: dict[str, list[Path]], out: Path) -> int:
    """Write {role: {path of a shard below the folder of `out`: SHA-256 of its manifest}}; return
    the number of shards. Raises `EmsError` if one has no manifest or there are none to train on.
    """
    index: dict[str, dict[str, str]] = {}
    for role, each in folders.items():
        index[role] = {}
        for shard in [shard for folder in each for shard in shards_in(folder)]:
            name = os.path.relpath(shard, out.parent)
            if name.startswith(os.pardir):
                raise mistake("shard elsewhere", shard=shard, out=out)
            index[role][name] = sha256_file(shard / MANIFEST)
    if not index[TRAIN]:
        listed = ", ".join(map(str, folders[TRAIN])) or "no folder"
        raise mistake("no shards to train on", out=out, listed=listed)
    write_json(out, index)
    return sum(map(len, index.values()))


def read_index(path: Path) -> dict[str, list[Path]]:
    """Return {role: shard folders}. Raises `Damaged` for a shard that differs from the list."""
    index = read_json(path, dict[str, Sums])
    if not index.get(TRAIN):
        raise Damaged(path, f"expected shards to train on under `{TRAIN}`, found none")
    for shard in (path.parent / name for entries in index.values() for name in entries):
        if not shard.parent.is_dir():
            raise Damaged(path, f"lists {shard}, which is not there")  # a wrong index?
    return {role: _listed(path, entries) for role, entries in index.items()}


def _listed(path: Path, entries: dict[str, str]) -> list[Path]:
    """Return the folders that a file lists. Raises `Damaged` for one that differs from the list."""
    folders = [path.parent / name for name in entries]
    for folder, sha256 in zip(folders, entries.values(), strict=True):
        manifest = folder / MANIFEST
        if not manifest.is_file() or sha256_file(manifest) != sha256:
            raise Damaged(folder, f"not there, or not the shard that {path} lists")
    return folders


def _read(path: Path, model: Any) -> Any:
    try:
        return read_json(path, model)
    except EmsError:
        return None


def is_shards(folder: Path) -> bool:
    manifest = _read(folder / MANIFEST, FolderManifest)
    listed = manifest and manifest.shards
    return listed is not None and {path.name for path in folder.iterdir()} <= {MANIFEST, *listed}


def is_several(folder: Path) -> bool:
    listed = _read(folder / LIST, Sums)
    if listed is None:
        return False
    others = [path for path in folder.iterdir() if path.name != LIST]
    return all(path.name in listed and is_shards(path) for path in others)


def holds_shards(folder: Path) -> bool:
    """Return whether a folder is one that `ems shards` writes: for one language pair, for several,
    or one of folders, each of which is checked when it is replaced.
    """
    return is_shards(folder) or is_several(folder) or all(map(Path.is_dir, folder.iterdir()))


def is_mined(folder: Path) -> bool:
    manifest = _read(folder / MANIFEST, MinedManifest)
    return bool(manifest) and {path.name for path in folder.iterdir()} <= {PAIRS, MANIFEST}


def shards_in(folder: Path) -> list[Path]:
    """Return the shards of a folder in order; of a shard, itself. Raises `EmsError` for others."""
    if not (folder / MANIFEST).is_file():
        raise Damaged(folder, f"not a shard: it has no {MANIFEST}")
    entries = read_json(folder / MANIFEST, FolderManifest).shards
    return [folder] if entries is None else sorted(_listed(folder / MANIFEST, entries))


def shards_of(folders: list[Path], languages: Sequence[str], sides: int = 2) -> list[Path]:
    """Return the folders of these languages only, with pairs, or with documents (`sides=1`)."""
    held = {folder: {*read_json(folder / MANIFEST, LanguageList).languages} for folder in folders}
    return [f for f, codes in held.items() if len(codes) == sides and codes <= {*languages}]


def folders_in(folder: Path) -> list[Path]:
    """Return the folders that the folder's list names, or [folder] if it has no list."""
    listed = folder / LIST
    return _listed(listed, read_json(listed, Sums)) if listed.is_file() else [folder]
