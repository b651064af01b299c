"""Are the files of an evaluation set those that were fetched? Their checksums lie beside them.

Sentences that a disk changed would be scored, and let into the training data, without a word. A
copy of the user's has no checksums: its readers say what is wrong with it.
"""

from collections.abc import Iterable
from pathlib import Path

from ems.corpora.content import check_lock
from ems.damaged import MANIFEST, Damaged
from ems.files import read_json, sha256_file
from ems.shapes import BELOW, COUNT, TEXT, mapping, record

UNIT = record({"files": mapping(record({"bytes": COUNT, "sha256": TEXT}), BELOW)})


def check_files(paths: Iterable[Path]) -> None:
    """Raise `Damaged` for a file that is not as it was fetched, or not there."""
    for path in paths:
        check_file(path)


def check_file(path: Path) -> str:
    """The SHA-256 of a file, checked against its lock; of a manifest, the files that it lists."""
    if path.name.endswith(MANIFEST):
        for name, entry in read_json(path, UNIT)["files"].items():
            _check(path.parent / name, entry["bytes"], entry["sha256"])
    return check_lock(path)


def _check(path: Path, size: int, sha256: str) -> None:
    if not path.is_file():
        raise Damaged(path, "no such file")
    if path.stat().st_size != size or sha256_file(path) != sha256:
        raise Damaged(path, "not the file that its manifest lists")
