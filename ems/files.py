"""Files that are either whole or absent.

Notable choices:
- every writer writes to a temporary name in the same folder, fsyncs, renames (DESIGN "On disk"), so
  a kill or a full disk never leaves half a file under a real name;
- the temporary name holds the process id, so that two writers cannot share one;
- JSON is written with sorted keys: the same content is the same bytes.
"""

import glob
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from ems.damaged import Damaged
from ems.errors import EmsError
from ems.shapes import Shape, misfit

SYNCED = 16  # files at once


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target`; on a clean exit fsync it and rename it to `target`.

    Works for a file and for a folder. After an exception the temporary is removed and `target` is
    as it was. An `OSError` (disk full, no permission) becomes an `EmsError` that names the target.
    """
    target = Path(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for stale in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
            _remove(stale)  # of a writer that was killed
    except OSError as error:
        raise _cannot_write(target, error) from error
    try:
        yield temporary
        _sync_all([*temporary.rglob("*"), temporary])
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        os.replace(temporary, target)
        _sync(target.parent)  # the folder's own entries, not the files beside the target
    except OSError as error:
        if error.filename and not str(error.filename).startswith(str(temporary)):
            raise
        raise _cannot_write(target, error) from error
    finally:
        _remove(temporary)


def _cannot_write(target: Path, error: OSError) -> EmsError:
    return EmsError(
        f"cannot write {target}: {error.strerror or error}; "
        "free some space or point the setting at another disk, then run the same command again"
    )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync_all(paths: list[Path]) -> None:
    """Fsync files at once, so that the disk commits many of a folder together: 1,400 in 0.1 s
    instead of 4 (measured on ext4).
    """
    if len(paths) > 1:
        with ThreadPoolExecutor(SYNCED) as pool:
            list(pool.map(_sync, paths))
    else:
        _sync(*paths)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(target: Path, text: str) -> None:
    """Write UTF-8 `text` to `target` atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(target: Path, value: Any) -> None:
    """Write `value` as sorted, indented JSON with a final newline, atomically."""
    write_text(target, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path, shape: Shape) -> Any:
    """Read JSON that has a shape (`ems.shapes`). Raises `Damaged` when the file is missing, is not
    JSON, or has another shape.
    """
    name = shape.get("title", "*")
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or nested without end
        raise Damaged(path, f"not valid JSON ({error})", name) from None
    if problem := misfit(value, shape):
        raise Damaged(path, problem, name)
    return value


def unreadable(path: Path, error: OSError) -> EmsError:
    """The error for a file that cannot be opened: missing, a folder, or closed to this user."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Damaged(path, "no such file")
    if isinstance(error, IsADirectoryError):
        return Damaged(path, "a folder where a file is expected")
    return EmsError(
        f"{path}: cannot be read ({error.strerror or error}); check its permissions and its disk"
    )


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file; only LF ends a line. Raises `Damaged` when there is no such file
    or it is not UTF-8.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise Damaged(path, f"not UTF-8 at byte {error.start:,}") from None
    return text.removesuffix("\n").split("\n")


@contextmanager
def reading_text(path: Path) -> Iterator[TextIO]:
    """A UTF-8 file to stream, in which only LF ends a line. Raises `Damaged` as `read_lines`."""
    try:
        with open(path, encoding="utf-8", newline="\n") as reader:
            yield reader
    except UnicodeDecodeError as error:
        raise Damaged(path, f"not UTF-8 ({error.reason})") from None
    except OSError as error:
        if error.filename != str(path):  # of another file
            raise
        raise unreadable(path, error) from None


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file, read in blocks. Raises `Damaged` when there is no such file."""
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from None
