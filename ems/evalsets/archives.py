"""Bring one unit of an evaluation set: download, check, unpack, and write its manifest last.

- the archive is unpacked into a temporary folder while it is being checked, and the readers read
  every file of it there: what is damaged or malformed neither becomes data nor is locked;
- files move to their places one by one, then `<unit>.manifest.json` is written: it is what the
  workflow waits for, and a killed job leaves none;
- the download goes when all is done; its lock stays, so that a later one is held against it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ems.benchmarks import benchmark, module
from ems.corpora.archive import unpack
from ems.corpora.download import DOWNLOADS as DEFAULTS
from ems.corpora.download import Downloads
from ems.corpora.fetch import fetch
from ems.errors import EmsError
from ems.evalsets.sets import manifest_name
from ems.evalsets.units import Unit
from ems.files import atomic_path, sha256_file, write_json

PLACE = "downloads"  # the folder of what is being downloaded, below that of the set


def fetch_unit(
    unit: Unit, source: str, folder: Path, locked: bool = True, how: Downloads = DEFAULTS
) -> dict[str, Any]:
    """Bring the files of `unit` into `folder` and write their manifest; return it.

    `source`, a directory or an address, takes the place of the published one unless it is ''.
    Raises `EmsError` for a download that fails, another sha256 than the documented one, an archive
    that is refused, and files that are malformed; then nothing has become data.
    """
    location = f"{(source or unit.base).rstrip('/')}/{unit.file}"
    download = folder / PLACE / Path(unit.file).name
    with _temporary_folder(folder, unit.unit) as temporary:

        def check(path: Path) -> dict[str, Any]:
            _check_sum(path, unit)
            _lay_out(path, unit, temporary)
            return {"read": _read(unit, temporary, location)}

        entry = fetch(location, download, check, locked, how)
        if not any(temporary.iterdir()):  # it was there already, so that nobody looked into it
            entry = {**entry, **check(download)}
        manifest = {
            "evalset": unit.set,
            "unit": unit.unit,
            "licence": benchmark(unit.set).licence,
            "url": location,
            **{key: entry[key] for key in ("bytes", "sha256", "read")},
            "files": _move(temporary, folder),
        }
    download.unlink()
    write_json(folder / manifest_name(unit.unit), manifest)
    return manifest


def _check_sum(path: Path, unit: Unit) -> None:
    found = sha256_file(path)
    if unit.sha256 and found != unit.sha256:
        raise EmsError(
            f"{path}: sha256 {found}, but that of the published file is {unit.sha256}; fetch it "
            f"from {unit.base}, or, if you trust the file, unpack it and set "
            f"evalsets.{unit.set}.path to its folder"
        )


def _lay_out(path: Path, unit: Unit, folder: Path) -> None:
    """The files of a download at their places in `folder`."""
    if unit.is_archive:
        unpack(path, unit.place, folder)
    else:
        (folder / unit.file).parent.mkdir(parents=True, exist_ok=True)
        os.link(path, folder / unit.file)


def _read(unit: Unit, folder: Path, location: str) -> int:
    """The sentences, pairs or documents of a unit; an error names the member of the archive."""
    try:
        return int(module(unit.set, "data").read_unit(folder, unit.unit))
    except EmsError as error:
        place = f"{folder}/" if unit.is_archive else f"{folder / unit.file}"
        told = f"{location}: " if unit.is_archive else location
        raise EmsError(error.finding.replace(place, told)) from None


def _move(source: Path, folder: Path) -> dict[str, Any]:
    """Move all files to `folder`, each whole; their bytes and sha256 by their names there."""
    moved = {}
    for path in sorted(item for item in source.rglob("*") if item.is_file()):
        name = str(path.relative_to(source))
        moved[name] = {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
        with atomic_path(folder / name) as temporary:
            os.replace(path, temporary)
    return moved


@contextmanager
def _temporary_folder(folder: Path, unit: str) -> Iterator[Path]:
    """A folder beside the unit's files for as long as it is needed; older ones of it go."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(f".unit-{unit}.*.part"):
        shutil.rmtree(stale)  # of a job that was killed
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".unit-{unit}.", suffix=".part") as name:
        yield Path(name)
