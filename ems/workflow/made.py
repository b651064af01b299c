"""Records of the settings, source and inputs that each file of an experiment was made from.

Snakemake keeps the record of an output (rule, params, inputs) in .snakemake/, which DVC does not
track: for a file that DVC restores from another revision the record is wrong, and a stale file
could pass as current. So each folder that DVC tracks also has the records in `.made`. They contain
hashes and no times: settings and source are hashed in the params; an input by its content or, if it
is large, by its own record. A file restored by DVC (its time differs from Snakemake's record)
counts as just made, with the record in `.made`, if the present inputs match, else as the oldest.
"""

import json
import os
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.base.files import read_json, sha256_file, write_text
from ems.base.provenance import digest
from ems.base.records import Json
from ems.config.stages import differences

FILE = ".made"
RECORDS = Path(".snakemake/metadata")  # a file per output, named by its path in base64
INCOMPLETE = Path(".snakemake/incomplete")  # the same, while its job runs
LOCKS = Path(".snakemake/locks")  # files while a Snakemake runs here
KEPT = ("rule", "params", "code", "conda_env", "container_img_url", "software_stack_hash")
KEPT += ("record_format_version",)
STAMP = ".snakemake_timestamp"  # in an output folder
EARLIEST = 1.0  # seconds since 1970: older than any input
SHOWN = 4  # names in a line about changes
_EXPECTED = re.compile(r"'--expect', '(\w+)'")  # the hash of the settings, among the params
_SOURCE = re.compile(r"^'([0-9a-f]{16,})'$")  # the hash of the source


def folder_of(path: str) -> Path | None:
    """Return the folder tracked by DVC that contains an output; None outside results/."""
    parts = Path(path).parts
    if parts[0] != "results":
        return None
    depth = 2 if parts[1] in ("tables", "figures") else 4 if "costs" in parts[2:3] else 3
    return Path(*parts[:depth]) if len(parts) > depth else None


class Made:
    """The records of an experiment's outputs and of the copies of its tables in results/."""

    def __init__(self, experiment: str) -> None:
        self.folders = (f"results/{experiment}/", "results/tables/", "results/figures/")
        self.records = {path: record for path, record in _records() if self._is_ours(path)}
        self.saved: dict[str, Json] = {}  # path -> its record in `.made`
        self.settings: dict[str, Json] = {}  # by their hash
        self.entries: dict[str, Json | None] = {}
        for place in ("*", f"{experiment}/*", f"{experiment}/costs/*"):
            for content in map(_read, Path("results").glob(f"{place}/{FILE}")):
                self.saved |= content.get("made", {})
                self.settings |= content.get("settings", {})

    def _is_ours(self, path: str) -> bool:
        return path.startswith(self.folders) and folder_of(path) is not None

    def is_here(self, path: str) -> bool:
        """Return True if Snakemake's record belongs to the present file."""
        made = self.records.get(path)
        return bool(made) and abs(_time(path) - made["endtime"]) < 0.01

    def entry(self, path: str) -> Json | None:
        """Return the record of a file; None if it has none, or an input is newer."""
        if path not in self.entries:
            self.entries[path] = None  # ends a cycle
            self.entries[path] = self._entry(path)
        return self.entries[path]

    def _entry(self, path: str) -> Json | None:
        if not self.is_here(path):
            return self.saved.get(path) if os.path.exists(path) else None
        record = self.records[path]
        names, sums = record["input"], record["input_checksums"]
        if any(_time(name) > record["starttime"] for name in names if name not in sums):
            return None
        hashes = {name: sums.get(name) or self._identity(name) for name in names}
        return {**{key: record[key] for key in KEPT}, "inputs": hashes}

    def _identity(self, path: str, checksum: bool = False) -> str:
        """Return the hash of a file's content or of its record, or its size if it has no record."""
        if checksum:
            return f"sha256:{sha256_file(Path(path))}" if os.path.isfile(path) else ""
        made = self.entry(path) if self._is_ours(path) else None
        return digest(made) if made else str(os.path.isfile(path) and os.path.getsize(path))

    def restore(self) -> list[str]:
        """Write Snakemake's records of restored files; return the files that do not match."""
        fits: dict[str, bool] = {}
        for path in self.saved:
            self._settle(path, fits)
        return [path for path, fit in fits.items() if not fit]

    def _settle(self, path: str, fits: dict[str, bool]) -> None:
        if path in fits or path not in self.saved or not os.path.exists(path):
            return
        if self.is_here(path) or _record_file(path, INCOMPLETE).exists():
            return
        made = self.saved[path]
        inputs = made["inputs"]
        for name in inputs:
            self._settle(name, fits)
        sums = {name: text for name, text in inputs.items() if text.startswith("sha256:")}
        same = (self._identity(name, name in sums) == text for name, text in inputs.items())
        fits[path] = all(fits.get(name, True) for name in inputs) and all(same)
        now = time.time() if fits[path] else EARLIEST
        for file in filter(os.path.lexists, (path, f"{path}/{STAMP}")):
            os.utime(file, (now, now), follow_symlinks=False)
        file = _record_file(path, RECORDS)
        if fits[path]:
            record = {key: made[key] for key in KEPT} | {"input": sorted(inputs)}
            record |= {"input_checksums": sums, "incomplete": False}
            self.records[path] = record | {"starttime": now, "endtime": _time(path)}
            write_text(file, json.dumps(self.records[path]))
        else:
            self.records.pop(path, None)
            file.unlink(missing_ok=True)

    def save(self, settings: dict[str, Json]) -> None:
        """Write `.made` of each folder; `settings`: hash -> settings of this run's jobs."""
        self.settings |= settings
        folders: dict[Path, Json] = {}
        for path in sorted({*self.records, *self.saved}):
            if (made := self.entry(path)) and (folder := folder_of(path)):
                folders.setdefault(folder, {})[path] = made
        for folder, entries in folders.items():
            hashes = {_found(_EXPECTED, made["params"]) for made in entries.values()}
            known = {name: self.settings[name] for name in sorted(hashes & set(self.settings))}
            text = json.dumps({"made": entries, "settings": known}, sort_keys=True)
            file = folder / FILE
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                write_text(file, text)

    def changes(self, jobs: Iterable[Any], settings: dict[str, Json]) -> list[str]:
        """Return a line per changed setting or source: the jobs that run again because of it."""
        again: dict[str, dict[str, dict[str, None]]] = {}  # reason, rule, names in order
        for job in sorted(jobs, key=lambda job: str(job.output)):
            record = self.records.get(str(job.output[0])) if job.output else None
            if not record:
                continue
            now = [repr(job.params.get("settings")), repr(job.params.get("code"))]
            name = job.wildcards.get("system") or "-".join(map(str, job.wildcards)) or "all"
            old, new = (_found(_EXPECTED, words) for words in (record["params"], now))
            reasons = []
            if old and new and old != new:
                known = self.settings.get(old)
                reasons += differences(known, settings[new]) if known else ["other settings"]
            if _found(_SOURCE, record["params"]) != _found(_SOURCE, now):
                reasons.append(f"the source of `{job.rule.name}` changed")
            for reason in reasons:
                again.setdefault(reason, {}).setdefault(job.rule.name, {})[str(name)] = None
        said = {reason: [_said(*item) for item in rules.items()] for reason, rules in again.items()}
        return [f"{reason}: {'; '.join(words)} again" for reason, words in said.items()]


def _said(rule: str, jobs: Iterable[str]) -> str:
    names = list(jobs)
    if len(names) > SHOWN:
        names[SHOWN - 1 :] = [f"{len(names) - SHOWN + 1} more"]
    return f"{', '.join(names)} {rule}"


def _found(pattern: re.Pattern[str], words: list[str]) -> str:
    """Return the first match of a pattern in the params of a record, or ""."""
    return next((match[1] for word in words if (match := pattern.search(word))), "")


def _time(path: str) -> float:
    """Return the modification time that Snakemake uses; 0 if the file is missing."""
    files = filter(os.path.lexists, (f"{path}/{STAMP}", path))
    return next((os.lstat(file).st_mtime for file in files), 0.0)


def _records() -> Iterable[tuple[str, Json]]:
    for folder, _, names in os.walk(RECORDS):
        for name in names:
            file = Path(folder, name)
            encoded = "".join(part.removeprefix("@") for part in file.relative_to(RECORDS).parts)
            record = _read(file)
            if record.get("endtime") and record.get("input") is not None:
                yield urlsafe_b64decode(encoded).decode(), record


def _read(file: Path) -> Json:
    """Read a JSON object; return {} for a damaged file, which is then written again."""
    with suppress(EmsError):
        return read_json(file, Json)
    return {}


def _record_file(path: str, root: Path) -> Path:
    """Return the path of Snakemake's record of an output; a long name is split into folders."""
    root.mkdir(parents=True, exist_ok=True)
    name, size = urlsafe_b64encode(path.encode()).decode(), os.pathconf(root, "PC_NAME_MAX") - 1
    *folders, last = [name[start : start + size] for start in range(0, len(name), size)]
    return root.joinpath(*(f"@{part}" for part in folders), last)


def is_locked() -> bool:
    """Return True if another Snakemake runs in this folder, or was killed in it."""
    return LOCKS.is_dir() and any(LOCKS.iterdir())
