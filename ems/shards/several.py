"""The shards of a folder of pair files: a folder for each of them, and a list of these beside.

Multi-parallel text makes pairs of a thousand language pairs, many of them small: a job for each
would take longer to start than to do its work.
"""

import shutil
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ems.base.damaged import Damaged
from ems.base.errors import EmsError
from ems.base.files import atomic_path, check_target, read_json, sha256_file, state_of, write_json
from ems.base.provenance import source_hash
from ems.base.shapes import BELOW, TEXT, mapping
from ems.shards.index import MANIFEST, is_shards

LIST = "pairs.json"
LISTED = mapping(TEXT, BELOW)  # language pair -> SHA-256 of the manifest of its folder


def is_several(folder: Path) -> bool:
    """Return whether a folder holds folders of shards and their list, and nothing else."""
    try:
        listed = read_json(folder / LIST, LISTED)
    except EmsError:
        return False
    others = [path for path in folder.iterdir() if path.name != LIST]
    return all(path.name in listed and path.is_dir() and is_shards(path) for path in others)


def folders_in(folder: Path) -> list[Path]:
    """Return the folders of shards that a folder of several lists; any other folder itself.

    Raises `Damaged` for one that is not as it was listed.
    """
    if not (folder / LIST).is_file():
        return [folder]
    listed = read_json(folder / LIST, LISTED)
    for name, sha256 in listed.items():
        manifest = folder / name / MANIFEST
        if not manifest.is_file() or sha256_file(manifest) != sha256:
            raise Damaged(folder / name, f"not there, or not the shards that {folder / LIST} lists")
    return [folder / name for name in listed]


def write_several(
    source: Path,
    vocabulary: Path,
    out: Path,
    state: Path | None = None,
    workers: int = 1,
    pairs: int | None = None,
    languages: Collection[str] = (),
) -> dict[str, Any]:
    """Encode the pair files of a folder, those of some `languages` (none: of all), as
    `ems.shards.writer.write_shards` does with one.

    Returns language pair -> SHA-256 of its manifest, which is the list in `out`.
    """
    from ems.shards.writer import PAIRS, check_vocabulary, close_folder, write_file_shard
    from ems.text.pieces import cut, done_pieces
    from ems.text.tsv import LIST as FILES
    from ems.text.tsv import codes_of

    check_target(out, is_several)
    files = read_json(source / FILES, mapping(TEXT, BELOW))
    paths = [source / name for name in sorted(files)]
    paths = [path for path in paths if not languages or {*codes_of(path)} <= {*languages}]
    cuts = {path: cut(path, pairs or PAIRS, size=None) for path in paths}
    for path, (_, found) in cuts.items():
        if found != files[path.name]:
            raise Damaged(path, f"its SHA-256 is not the one in {source / FILES}")
    named = [(path, piece.name, piece) for path, (pieces, _) in cuts.items() for piece in pieces]
    pieces = [replace(piece, number=at) for at, (_, _, piece) in enumerate(named)]
    check_vocabulary(vocabulary)
    sha256 = sha256_file(vocabulary)
    key = {path.name: sum256 for path, (_, sum256) in cuts.items()}
    key |= {"vocabulary": sha256, "pairs": str(pairs), "code": source_hash("ems.shards.writer")}
    work, state = partial(write_file_shard, (vocabulary, sha256)), state or state_of(out)
    with (
        done_pieces(f"encode {source}", work, pieces, state, key, workers) as results,
        atomic_path(out, is_several) as folder,
    ):
        for result, (path, name, _) in zip(results, named, strict=True):
            (folder / path.stem).mkdir(parents=True, exist_ok=True)
            shutil.move(result, folder / path.stem / name)
        for path in paths:
            close_folder(folder / path.stem, path)
        listed = {path.stem: sha256_file(folder / path.stem / MANIFEST) for path in paths}
        write_json(folder / LIST, listed)
    return listed
