"""Fetch one unit of an evaluation set: download, check, unpack, and write its manifest last.

The benchmark's readers first read every file in a temporary folder, so malformed files never become
data and are never locked. Then the files are moved into place, and the manifest that the workflow
waits for is written. It does not name the source, so switching to a mirror makes no result stale.
"""

import os
import shutil
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import atomic_path, sha256_file, write_json
from ems.base.schema import Json
from ems.config.plugins import benchmark, module
from ems.corpora.archive import unpack
from ems.corpora.content import lock_of, read_lock
from ems.corpora.download import DOWNLOADS, Downloads
from ems.corpora.evalsets.sets import Unit, manifest_name, unit
from ems.corpora.fetch import bring, lock_entry
from ems.corpora.slots import MACHINE

ARCHIVES = "downloads"  # subfolder for archives and their locks


def fetch_evalset(
    name: str,
    source: str,
    code: str,
    folder: Path,
    locked: bool = True,
    downloads: Downloads = DOWNLOADS,
) -> int:
    """Fetch the unit `code` of an evaluation set; return its number of sentences or documents.

    `source` is a directory or an address ('': the published one). If an `EmsError` is raised, the
    data in `folder` are unchanged.
    """
    wanted = unit(name, code)
    base = (source or wanted.base).rstrip("/")
    if not base:
        raise EmsError(f"{name}: give --source, the directory or address of its files")
    manifest = folder / manifest_name(code)
    with ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        prefix = f".unit-{code}.{MACHINE}."  # another machine may be fetching the same unit
        for stale in folder.glob(f"{prefix}*.part"):  # left by a killed job
            shutil.rmtree(stale)
        scratch = tempfile.TemporaryDirectory(dir=folder, prefix=prefix, suffix=".part")
        temporary = Path(stack.enter_context(scratch))
        locks, parts = {}, []
        for file in wanted.files:
            place = folder / ARCHIVES / Path(file).name if wanted.is_archive else folder / file
            location = f"{base}/{file}"
            path = place
            if manifest.exists() or not (locked and _is_here(place, location)):
                path = stack.enter_context(bring(location, place, downloads))
                parts.append(path)
            check = partial(_lay_out, wanted, file, temporary)
            locks[place] = lock_entry(path, place, location, check, locked)
        try:
            count = int(module(name, "data").read_unit(temporary, code))
        except EmsError as error:  # name the source, not the temporary folder
            prefix = f"{base}/{wanted.files[0]}: " if wanted.is_archive else f"{base}/"
            message = error.finding.replace(f"{temporary}/", prefix)
            raise EmsError(message.replace(f"{temporary}: ", f"{base}: ")) from None
        for place, lock in locks.items():
            write_json(lock_of(place), lock)
        manifest.unlink(missing_ok=True)  # it lists the files that are replaced now
        files = {}
        for unpacked in sorted(path for path in temporary.rglob("*") if path.is_file()):
            relative = str(unpacked.relative_to(temporary))
            files[relative] = {"bytes": unpacked.stat().st_size, "sha256": sha256_file(unpacked)}
            with atomic_path(folder / relative) as target:
                os.replace(unpacked, target)
        for path in parts:
            path.unlink()
    entry = {"evalset": name, "unit": code, "licence": benchmark(name).licence}
    write_json(manifest, {**entry, "read": count, "files": files})
    return count


def _is_here(place: Path, location: str) -> bool:
    """Return True if the file was fetched from `location` before and matches its lock."""
    if not (place.is_file() and lock_of(place).is_file()):
        return False
    lock = read_lock(place)
    return lock.url == location and lock.sha256 == sha256_file(place)


def _lay_out(unit: Unit, file: str, folder: Path, path: Path) -> Json:
    sha256 = sha256_file(path)
    if unit.sha256 not in ("", sha256):
        raise EmsError(
            f"{path}: sha256 {sha256}, but the published file has {unit.sha256}; fetch it "
            f"from {unit.base}, or, if you trust the file, unpack it and set "
            f"evalsets.{unit.set}.path to its folder"
        )
    if unit.is_archive:
        unpack(path, unit.place, folder)
    else:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, folder / file)
        except OSError:  # a file system without links
            shutil.copyfile(path, folder / file)
    return {}
