"""Check that the files of an evaluation set are those that were fetched, by their checksums.

A copy of the user's has no checksums: its readers say what is wrong with it.
"""

from collections.abc import Iterable
from pathlib import Path

from ems.corpora.content import check_lock
from ems.damaged import MANIFEST, Damaged
from ems.files import read_json, sha256_file
from ems.shapes import BELOW, COUNT, TEXT, mapping, record

UNIT = record({"files": mapping(record({"bytes": COUNT, "sha256": TEXT}), BELOW)})


def check_files(paths: Iterable[Path]) -> None:
    """Raise `Damaged` for a file that is absent or is not as it was fetched."""
    for path in paths:
        check_file(path)


def check_file(path: Path) -> str:
    """Return the SHA-256 of a file, checked against its lock; check the files of a manifest too."""
    if path.name.endswith(MANIFEST):
        for name, entry in read_json(path, UNIT)["files"].items():
            file = path.parent / name
            if not file.is_file():
                raise Damaged(file, "no such file")
            if file.stat().st_size != entry["bytes"] or sha256_file(file) != entry["sha256"]:
                raise Damaged(file, "not the file that its manifest lists")
    return check_lock(path)
