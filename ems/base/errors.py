"""Errors that a user can act on, and the advice for a damaged or missing file.

Snakemake makes only the outputs that it is asked for, so the advice names the output that holds the
file, and a second one if `all` would otherwise make too much again. Snakemake compares the content
of small inputs, but only the times of large ones and of folders, and reruns everything that depends
on a file made in the same run. So a shard is followed by the index, and text by `text`. In the next
run, `all` finds a small file with the same bytes and trains nothing again.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, BinaryIO

FAILED, REQUEUE = 1, 75  # exit statuses; 75 (EX_TEMPFAIL of sysexits.h): the same command resumes
LOCK = ".lock.json"  # suffix of the lock of a download, in the same folder
MANIFEST = ".manifest.json"  # suffix of the manifest of a unit of an evaluation set
FETCHED = "fetched"  # folder of receipts of downloads
MISTAKES = Path(__file__).parent.parent  # */mistakes.tsv: mistake, message
STDERR_CHARACTERS = 500  # quoted from another program's stderr in an error


class EmsError(Exception):
    """An error for the user: what was expected and found, where, and what to do. The command line
    prints it without a traceback and exits with `status`: 75 if the same command resumes, else 1.
    """

    def __init__(self, message: object = "", status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status

    @property
    def finding(self) -> str:
        """The problem, without advice that depends on the place of a file."""
        return str(self)


def mistake(name: str, /, **words: Any) -> EmsError:
    """Return the error of this name in mistakes.tsv of a room, filled in; lists with commas, an
    empty one as "none". Its message is no part of a stage's source (`ems.base.provenance`).
    """
    from ems.base.files import read_table  # imported late: files have mistakes, too

    rows = [row for path in MISTAKES.glob("*/mistakes.tsv") for row in read_table(path)]
    message = next(row["message"] for row in rows if row["mistake"] == name)
    for key, word in words.items():
        words[key] = (", ".join(word) or "none") if isinstance(word, list | tuple | dict) else word
    return EmsError(message.format(**words))


def check(mistakes: Mapping[str, Any], /, **words: Any) -> None:
    """Raise the first of the `mistakes` (name -> whether it was made)."""
    for name, made in mistakes.items():
        if made:
            raise mistake(name, **words)


class NotFinite(EmsError):
    """Vectors of a model that are not finite numbers."""


@contextmanager
def needs_extra(user: str, extra: str) -> Iterator[None]:
    """Raise `EmsError` that names an extra if an import in the block finds no package."""
    try:
        yield
    except ModuleNotFoundError as error:
        how = f"in the folder of this project: pip install '.[{extra}]'"
        raise EmsError(f"{user} needs {error.name}; {how}") from None


def failed_program(program: str, status: int, stderr: BinaryIO) -> EmsError:
    """Return the error for a program that failed, with the end of its stderr file."""
    stderr.seek(max(0, stderr.seek(0, 2) - 4 * STDERR_CHARACTERS))
    end = " ".join(stderr.read().decode(errors="replace").split())[-STDERR_CHARACTERS:]
    return EmsError(f"{program}: exit status {status}; the end of its stderr: {end or '(empty)'}")


def near(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean ...?)" with the most similar word, or nothing."""
    from difflib import get_close_matches

    matches = get_close_matches(word, list(known), 1)
    return f" (did you mean {matches[0]}?)" if matches else ""


class Damaged(EmsError):
    """A file that is missing or has unexpected content; the message ends in advice, but not to
    delete a file whose name does not fit the pattern `name`: it may be a different file.
    """

    def __init__(self, path: Path, problem: str, name: str = "*") -> None:
        self.path, self.problem, self.name = Path(path), problem, name
        super().__init__(self.message())

    @property
    def finding(self) -> str:
        return f"{self.path}: {self.problem}"

    def message(self, experiment: str = "", data: str = "data") -> str:
        """Return the message with the advice for an experiment and a data folder (see `advice`)."""
        if os.path.lexists(self.path) and not fnmatch(self.path.name, self.name):
            return f"{self.finding}; expected a file {self.name}: is this the right file?"
        return f"{self.finding}; {advice(self.path, experiment, data)}"

    def __reduce__(self) -> tuple:
        return type(self), (self.path, self.problem, self.name)


def advice(path: Path | str, experiment: str = "", data: str = "data") -> str:
    """Return the end of a message: what to do about a missing or damaged file. `data` has
    downloads; `experiment` reads them (default: the one in config.yaml).
    """
    delete, runs, owner = _remedy(path, data) if os.path.isfile("Snakefile") else ([], [], "")
    if not delete:
        return "make or fetch it again" if os.path.lexists(path) else "make or fetch it first"
    if not runs:
        return f"delete {shlex.join(delete)} and run the same command again"
    experiment = owner or experiment
    chosen = ["--config", f"experiment={experiment}"] if experiment else []
    command = " && ".join(shlex.join(["snakemake", *chosen, "--", name]) for name in runs)
    present = [name for name in delete if os.path.lexists(name)]
    again = f"delete {shlex.join(present)} and make it again" if present else "make it"
    return f"{again}: `{command}`"


def _remedy(path: Path | str, data: str) -> tuple[list[str], list[str], str]:
    """Return what to delete, then the outputs of a run of Snakemake each (none: rerunning the
    command makes it), and the experiment of a path in results/; by errors.tsv, whose `path` is
    below a folder. If one job makes many files, its receipts are deleted as well, so that it makes
    the missing ones. Links are not followed.
    """
    from ems.base.files import read_table

    place, roots = Path(os.path.abspath(path)), {"results": "results", "data": data}
    for row in read_table(Path(__file__).with_suffix(".tsv")):
        root = Path(roots[row["folder"]])
        inside = os.path.relpath(place, root) if place.is_relative_to(root.absolute()) else ""
        if found := re.fullmatch(row["path"], inside, re.DOTALL):
            words = {**found.groupdict(), "root": root, "path": str(root / inside)}
            break
    else:
        return [], [], ""
    experiment = words.get("experiment", "")
    if experiment and not os.path.isfile(f"configs/{experiment}.yaml"):
        return [], [], ""
    delete: list[str] = []
    for name in row["delete"].split():
        special = {"@manifest": _manifest, "@receipts": _receipts}.get(name)
        delete += special(**words) if special else [name.format(**words)]
    runs = [run.format(**words) for run in row["runs"].split()]
    return list(dict.fromkeys(delete)), runs, experiment


def _manifest(root: Path, own: str, file: str | None, path: str) -> list[str]:
    """Return the manifest that lists a file of an evaluation set, or the file without one."""
    manifests = (root / own).glob(f"*{MANIFEST}")
    listed = (each for each in manifests if f'"{file}"' in each.read_text("utf-8", "replace"))
    return [str(next(listed, path))]


def _receipts(own: str, **_: object) -> list[str]:
    """Return the folders in which experiments list the downloads of a corpus or set as fetched."""
    return sorted(map(str, Path("results").glob(f"*/{FETCHED}/{own}")))
