"""Write files that are either whole or absent, and read text, JSON and checksums.

A writer writes to a temporary name in the same folder, syncs and renames, so that a kill or a full
disk never leaves half a file under a real name. It replaces only a regular file, or a folder that
is marked as ours. Other folders, devices and pipes are rejected before any work is done.
"""

import csv
import errno
import hashlib
import json
import math
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.records import fitting

# files of a model folder, in addition to model.json; the heads are for training alone
ENCODER, HEADS, VOCABULARY = "model.safetensors", "heads.safetensors", "vocabulary.model"
NGRAMS = "ngrams.safetensors"  # file of a model folder with n-grams
EXPORTED, SUMS = "ems.json", "SHA256SUMS"  # files of an exported folder
MARK = ".ems-state"  # file in a state folder: it is ours, so it may be deleted
SURROGATE = re.compile("[\ud800-\udfff]")  # half of a character, which UTF-8 cannot hold
HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")  # escape of a surrogate in JSON
SYNC_THREADS = 16
KERNEL = (Path("/dev"), Path("/proc"), Path("/sys"))  # links here lead to a process's own streams
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
CHECK = "check the disk and its free space"
ADVICE = {  # for errors of the operating system
    "free some space or point the setting at another disk": (errno.ENOSPC, errno.EDQUOT),
    "raise the limit of file sizes (ulimit -f)": (errno.EFBIG,),
    "choose a place where you may write": (errno.EACCES, errno.EPERM, errno.EROFS),
    "it vanished while it was written; stop what deletes or writes it too": (errno.ENOENT,),
    "a part of this path is a file; choose another place": (errno.ENOTDIR, errno.EEXIST),
    "choose a shorter name": (errno.ENAMETOOLONG,),
    "a link in it leads back to itself; choose another place": (errno.ELOOP,),
}
OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # reading has none of them


@contextmanager
def atomic_path(target: Path, ours: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """Yield a temporary path in the same folder; on a clean exit sync and rename it to `target`.
    The target is a file or, with `ours`, a folder: `ours` returns whether an existing folder may be
    replaced. After an exception `target` is unchanged. Raises `EmsError` for a target of another
    kind (`check_target`), and for an `OSError` (disk full) one that names the target.
    """
    target = Path(target)
    check_target(target, ours)
    temporary = _temporary(target)
    # Other writers' files are removed even if one still runs: a worker may outlive its parent.
    stale = re.compile(rf"\.{re.escape(target.name)}\.\d+\.ems(\.old)?\.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for path in target.parent.iterdir():
            if stale.fullmatch(path.name):
                remove(path)
    except OSError as error:
        raise cannot_write(target, error) from error
    try:
        yield temporary
        _sync(temporary)
        if inside := list(temporary.rglob("*")):  # in threads 1,400 take 0.1 s instead of 4 (ext4)
            with ThreadPoolExecutor(SYNC_THREADS) as pool:
                list(pool.map(_sync, inside))
        old = temporary.with_suffix(".old.part")
        if target.is_dir() and not target.is_symlink():
            os.replace(target, old)  # so that a kill never leaves a part of it under its name
        os.replace(temporary, target)
        remove(old)
        _sync(target.parent)  # only the entries of the folder, not its other files
    except OSError as error:
        if error.filename == str(target) or _of_writing(error, str(temporary)):
            raise cannot_write(target, error) from error
        raise
    finally:
        remove(temporary)


def _of_writing(error: OSError, place: str | None = None) -> bool:
    """Return whether an error is of an output whose names begin with `place`. An error of an open
    file has no name, and one of `shutil` names the input first, so its number must be one that
    only writing has. NumPy and Pillow give neither, but words.
    """
    names = (error.filename, error.filename2)
    first, second = (place and str(name).startswith(place) for name in names)
    if first or (error.filename and not second):
        return bool(first)
    words = error.errno is None and re.search("writ(ing|ten)", str(error))
    return error.errno in OF_WRITING or bool(words)


def check_target(target: Path, ours: Callable[[Path], bool] | None = None) -> None:
    """Raise `EmsError` unless `target` is absent or a regular file. With `ours`, it must be absent,
    an empty folder, or a folder for which `ours` returns true.
    """
    kind = kind_of(target)
    if target.name:
        kind_of(_temporary(target))  # a longer name, perhaps too long
    if kind == "nothing" or (kind == "a file" and not ours):
        return
    if kind == "a folder" and ours and target.name not in ("", "..") and not target.is_symlink():
        if ours(target) or not any(target.iterdir()):
            return
        kind = "a folder with other files in it"
    expected = "a new folder or one that this command made" if ours else "the name of a file"
    raise mistake("other target", target=target, expected=expected, found=kind)


def state_of(out: Path) -> Path:
    """Return the folder, next to the output, that keeps finished pieces until `out` is whole."""
    return out.with_name(f".{out.name}.state")


def claim_state(state: Path) -> None:
    """Make a state folder and mark it as ours. Raises `EmsError` for other files in it."""
    kind = kind_of(state)
    try:
        names = sorted(path.name for path in state.iterdir()) if kind == "a folder" else []
        if kind in ("nothing", "a folder") and (not names or MARK in names):
            state.mkdir(parents=True, exist_ok=True)
            (state / MARK).touch()
            return
    except OSError as error:
        raise cannot_write(state, error) from None
    raise mistake("other state", state=state, found=f"{names[0]} in it" if names else kind)


def drop_state(state: Path) -> None:
    """Delete a state folder, its mark last, so that what a kill leaves is still known as ours."""
    for path in state.iterdir() if state.is_dir() else ():
        if path.name != MARK:
            remove(path)
    (state / MARK).unlink(missing_ok=True)
    with suppress(OSError):  # a link, or another process has just written there
        state.rmdir()


def kind_of(path: Path, refused: Callable[..., EmsError] | None = None) -> str:
    """Describe what is at `path`, links followed: "nothing", "a file", "a folder", "a device", ...
    Raises the error that `refused` makes if the system rejects the path, as below a file.
    """
    try:
        mode = os.stat(path).st_mode
        if path.is_symlink() and any(map(path.parent.resolve().is_relative_to, KERNEL)):
            return "a device"
    except FileNotFoundError:
        return "nothing"
    except (OSError, ValueError) as error:
        raise (refused or cannot_write)(path, error) from None
    return KINDS.get(stat.S_IFMT(mode), "a file")


def check_readable(path: Path, flag: str = "") -> None:
    """Raise `EmsError` for a pipe, a device or a socket: reading from it might never end."""
    kind = kind_of(path, unreadable)
    if kind not in ("nothing", "a file", "a folder"):
        raise EmsError(f"{flag} {path}: expected a file or a folder, found {kind}".strip())


def check_unchanged(path: Path, size: int) -> None:
    """Raise `EmsError` if a file no longer has `size` bytes: its result would look current."""
    if not path.exists() or path.stat().st_size != size:
        raise EmsError(f"{path}: it changed while it was read; run again")


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.ems.part")


def cannot_write(target: Path | str, error: OSError | ValueError) -> EmsError:
    number = getattr(error, "errno", None)
    advice = next((words for words, numbers in ADVICE.items() if number in numbers), CHECK)
    reason = getattr(error, "strerror", None) or error
    return EmsError(f"cannot write {target}: {reason}; {advice}, then run the same command again")


def _nowhere() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yield standard output, and flush it. Raises `EmsError` if it cannot be written (disk full),
    and `BrokenPipeError` if its reader is gone (`| head`).
    """
    if sys.stdout is None:  # closed by the shell (`>&-`)
        sys.stdout = _nowhere()
    try:
        try:
            yield sys.stdout
        finally:
            sys.stdout.flush()
    except OSError as error:
        if not _of_writing(error):
            raise
        sys.stdout = _nowhere()  # or Python flushes again
        raise cannot_write("standard output", error) from error


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(target: Path, text: str) -> None:
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(target: Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys: the same content gives the same bytes."""
    write_text(target, as_json(value))


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"expected finite numbers, found {text[:40]}")
    return value


_JSON = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def parse_json(text: str) -> Any:
    """Parse JSON, with finite numbers (not NaN or 1e999). Raises `json.JSONDecodeError`."""
    try:
        value = _JSON.decode(text)
        escaped = HALF_CHARACTER.search(text)  # maybe half of a surrogate pair
        if escaped and (half := SURROGATE.search(json.dumps(value, ensure_ascii=False))):
            raise json.JSONDecodeError(f"half of a character, {ascii(half[0])[1:-1]}", text, 0)
        return value
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:  # more than 4,300 digits or 1,000 levels
        raise json.JSONDecodeError(str(error), text, 0) from None


def read_json(path: Path, schema: Any, name: str = "*") -> Any:
    """Return the content of a JSON file as a value of type `schema`: a `Record`, `dict[str, Text]`,
    ... Raises `Damaged` if the file is missing, is not JSON, or does not fit. `name` is a pattern
    for the name of such files: a file of another name that does not fit is not called damaged.
    """
    try:
        return fitting(schema, parse_json(read_text(path, name)))
    except json.JSONDecodeError as error:
        raise Damaged(path, f"not valid JSON ({error})", name) from None
    except ValueError as error:
        raise Damaged(path, str(error), name) from None


def read_text(path: Path, name: str = "*") -> str:
    """Return the text of a UTF-8 file. Raises `Damaged` as `read_json` does."""
    check_readable(Path(path))
    try:
        return Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise Damaged(path, f"not UTF-8 at byte {error.start:,}", name) from None


def unreadable(path: Path, error: OSError | ValueError) -> EmsError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Damaged(path, "no such file")
    if isinstance(error, IsADirectoryError):
        return Damaged(path, "a folder where a file is expected")
    reason = getattr(error, "strerror", None) or error
    return EmsError(f"{path}: cannot be read ({reason}); check its name, permissions and disk")


def system_error(error: Exception, path: Path) -> OSError:
    """Return the error of the operating system that a library written in Rust has put into text."""
    if number := re.search(r"\(os error (\d+)\)", str(error)):
        return OSError(int(number[1]), os.strerror(int(number[1])), str(path))
    return OSError(None, str(error), str(path))


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table of the package, tab-separated, as dicts by its first line."""
    with open(path, encoding="utf-8", newline="") as reader:
        return list(csv.DictReader(reader, delimiter="\t", quoting=csv.QUOTE_NONE))


@contextmanager
def reading_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file. Raises `EmsError` for errors of the operating system, also in the block."""
    try:
        with open(path, "rb") as reader:
            yield reader
    except OSError as error:
        raise unreadable(path, error) from None


@contextmanager
def reading_text(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 file whose lines end with LF only. Raises `Damaged` for other text."""
    try:
        with open(path, encoding="utf-8", newline="\n") as reader:
            yield reader
    except UnicodeDecodeError as error:
        raise Damaged(path, f"not UTF-8 ({error.reason})") from None
    except OSError as error:
        if error.filename != str(path):  # raised for another file
            raise
        raise unreadable(path, error) from None


def visible_files(folder: Path) -> list[Path]:
    """Return every file below a folder that is neither hidden nor in a hidden folder, sorted."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [f for f in files if not any(n.startswith(".") for n in f.relative_to(folder).parts)]


def sha256_file(path: Path) -> str:
    check_readable(path)
    with reading_bytes(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def check_sha256(path: Path, expected: str | None, listed: str) -> None:
    """Raise `Damaged` for a file with another SHA-256 than the one that the file `listed` has."""
    if sha256_file(path) != expected:
        raise Damaged(path, f"its SHA-256 is not the one in {listed}")
