"""Export a trained encoder for sentence-transformers, transformers and onnxruntime."""

from pathlib import Path

from ems.base.errors import mistake
from ems.base.files import EXPORTED, SUMS, sha256_file, write_text
from ems.base.texts import read_lines

NAMED = 3  # most files that an error names
PLAIN = "plain.json"  # describes a folder of `ems export --plain`, which has no ems.json


def is_export(folder: Path, edited: str = "") -> bool:
    """Return True if `ems export` wrote the folder, so that it may be replaced. Raises `EmsError`
    if it holds a file that is not in SHA256SUMS, or that has been changed since, except `edited`.
    """
    described = any((folder / name).is_file() for name in (EXPORTED, PLAIN))
    if not (described and (folder / SUMS).is_file()):
        return False
    rows = (line.partition("  ") for line in read_lines(folder / SUMS))
    sums = {name: sha256 for sha256, _, name in rows}
    own = [
        name
        for path in sorted(folder.rglob("*"))
        if (name := str(path.relative_to(folder))) not in (SUMS, edited)
        and (path.is_symlink() or not path.is_dir())
        and (name not in sums or path.is_symlink() or sha256_file(path) != sums[name])
    ]
    if own:
        more = f" and {len(own) - NAMED} more" if len(own) > NAMED else ""
        raise mistake("files of others", folder=folder, named=own[:NAMED], more=more)
    return True


def write_sums(folder: Path) -> None:
    """Write SHA256SUMS of all files of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / SUMS)
    sums = (f"{sha256_file(path)}  {path.relative_to(folder)}\n" for path in files)
    write_text(folder / SUMS, "".join(sums))
