"""Fetch one unit of an evaluation set: download, check, unpack, and write its manifest last.

The benchmark's readers first read every file in a temporary folder, so malformed files never become
data and are never locked. Then the files are moved into place, and the manifest that the workflow
waits for is written. It does not name the source, so switching to a mirror makes no result stale.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ems.base.errors import EmsError, mistake
from ems.base.files import atomic_path, sha256_file, write_json
from ems.base.records import Json
from ems.config.plugins import benchmark, module
from ems.corpora.archive import unpack
from ems.corpora.content import check_file, lock_of, read_lock
from ems.corpora.download import DOWNLOADS, Downloads
from ems.corpora.evalsets.sets import Unit, manifest_name, unit
from ems.corpora.fetch import Fetched, bring, fetch_each, is_here, is_of, lock_entry
from ems.corpora.slots import MACHINE, alone

ARCHIVES = "downloads"  # subfolder for archives and their locks


@dataclass(frozen=True)
class SetSource:
    """An evaluation set at a directory or an address ('': as published), and its folder here."""

    name: str
    source: str
    folder: Path
    locked: bool = True
    downloads: Downloads = DOWNLOADS

    def fetch_all(self, codes: Sequence[str], again: bool = False) -> dict[str, str]:
        """Fetch units, present ones only if asked `again`; return {unit: manifest's SHA-256}."""
        one, base = partial(self._fetch_missing, again), self._base(unit(self.name, codes[0]))
        return fetch_each(self.name, "units", codes, one, base, self.downloads)

    def _fetch_missing(self, again: bool, code: str) -> Fetched:
        manifest, wanted = self.folder / manifest_name(code), unit(self.name, code)
        with alone(manifest, manifest) as made:
            here = made or (self.locked and not again and self._is_current(wanted))
            if not here:
                self.fetch(code)
        locks = [] if here else [read_lock(self._place(wanted, file)) for file in wanted.files]
        return sha256_file(manifest), sum(lock.bytes for lock in locks)

    def _is_current(self, unit: Unit) -> bool:
        """Return whether a unit was fetched from here and its manifest's files are whole."""
        with suppress(EmsError):
            check_file(self.folder / manifest_name(unit.unit))
            places = {file: read_lock(self._place(unit, file)) for file in unit.files}
            return all(is_of(lock, f"{self._base(unit)}/{file}") for file, lock in places.items())
        return False

    def _base(self, unit: Unit) -> str:
        if base := (self.source or unit.base).rstrip("/"):
            return base
        raise EmsError(f"{unit.set}: give --source, the directory or address of its files")

    def _place(self, unit: Unit, file: str) -> Path:
        return self.folder / (f"{ARCHIVES}/{Path(file).name}" if unit.is_archive else file)

    def fetch(self, code: str) -> int:
        """Fetch a unit; return its number of texts. An `EmsError` leaves the data unchanged."""
        wanted = unit(self.name, code)
        base = self._base(wanted)
        folder, manifest = self.folder, self.folder / manifest_name(code)
        with ExitStack() as stack:
            folder.mkdir(parents=True, exist_ok=True)
            prefix = f".unit-{code}.{MACHINE}."  # another machine may be fetching the same unit
            for stale in folder.glob(f"{prefix}*.part"):  # left by a killed job
                shutil.rmtree(stale)
            scratch = tempfile.TemporaryDirectory(dir=folder, prefix=prefix, suffix=".part")
            temporary = Path(stack.enter_context(scratch))
            locks, parts = {}, []
            for file in wanted.files:
                path = place = self._place(wanted, file)
                location = f"{base}/{file}"
                if manifest.exists() or not (self.locked and is_here(place, location)):
                    path = stack.enter_context(bring(location, place, self.downloads))
                    parts.append(path)
                check = partial(_lay_out, wanted, file, temporary)
                locks[place] = lock_entry(path, place, location, check, self.locked)
            try:
                count = int(module(self.name, "data").read_unit(temporary, code))
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
                size, sha256 = unpacked.stat().st_size, sha256_file(unpacked)
                files[relative] = {"bytes": size, "sha256": sha256}
                with atomic_path(folder / relative) as target:
                    os.replace(unpacked, target)
            for path in parts:
                path.unlink()
        entry = {"evalset": self.name, "unit": code, "licence": benchmark(self.name).licence}
        write_json(manifest, {**entry, "read": count, "files": files})
        return count


def _lay_out(unit: Unit, file: str, folder: Path, path: Path) -> Json:
    sha256 = sha256_file(path)
    if unit.sha256 not in ("", sha256):
        raise mistake("another checksum", path=path, sha256=sha256, unit=unit)
    if unit.is_archive:
        unpack(path, unit.place, folder)
    else:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / file)
    return {}
