"""What to do about a file that is not as it was written: what to delete, and what makes it again.

Snakemake makes what it is asked for. A file on the way to something newer it does not make again,
so the advice asks for the output that holds the file.

Notable choices:
- Snakemake compares the checksums of inputs of up to 1 MB, and only the times of larger ones and of
  folders; and what follows a file that is made in the same run, it always makes again. After a
  shard was made again, `all` would make the index, and so train. If the index is made first, in a
  run of its own or of the shard, `all` sees a small file with the same bytes, and does not. For the
  same reason a file of text is followed by a run of everything before training (`text`): most often
  that has nothing to do, and else it costs hours instead of the days of training;
- a file of an evaluation set is no output, the manifest of its unit is;
- one file of a model folder cannot be made without the others.
"""

import os
import shlex
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from ems.errors import EmsError

LOCK = ".lock.json"  # of a download, beside it
MANIFEST = ".manifest.json"  # of a unit of an evaluation set
TIMES = ".times.jsonl"  # of a training


class Damaged(EmsError):
    """A file that is not as it was written, or not there; the message ends in the advice.

    `name` is what such a file is called, a pattern: nothing is deleted that is called otherwise.
    """

    def __init__(self, path: Path, problem: str, name: str = "*") -> None:
        self.path, self.problem, self.name = Path(path), problem, name
        super().__init__(self.message())

    @property
    def finding(self) -> str:
        """The message without the advice."""
        return f"{self.path}: {self.problem}"

    def message(self, experiment: str = "", data: str = "data") -> str:
        """The message, for an experiment and a data folder (see `advice`)."""
        if os.path.lexists(self.path) and not fnmatch(self.path.name, self.name):
            return f"{self.finding}; expected a file {self.name}: is this the one that was meant?"
        return f"{self.finding}; {advice(self.path, experiment, data)}"

    def __reduce__(self) -> tuple:
        return type(self), (self.path, self.problem, self.name)


class _Remedy(NamedTuple):
    """What to delete, the outputs that Snakemake then makes (none: those of any command), and what
    it makes after them in a run of its own.
    """

    doomed: str
    targets: tuple[str, ...] = ()
    experiment: str = ""
    after: str = ""

    def command(self) -> str:
        """The words for a shell."""
        chosen = ["--config", f"experiment={self.experiment}"] if self.experiment else []
        runs = [self.targets, (self.after,)] if self.after else [self.targets]
        return " && ".join(shlex.join(["snakemake", *chosen, "--", *names]) for names in runs)


def advice(path: Path | str, experiment: str = "", data: str = "data") -> str:
    """What to do about a damaged or missing file, in words that end a message.

    `data` is the folder of downloads as config.yaml names it. `experiment` is the one that reads
    them ('': the one that config.yaml names); files below `results` say their own.
    """
    remedy = _remedy(path, experiment, data)
    if remedy is None:
        return "make or fetch it again" if os.path.lexists(path) else "make or fetch it first"
    doomed = shlex.quote(remedy.doomed) if os.path.lexists(remedy.doomed) else ""
    if not remedy.targets:
        return f"delete {shlex.quote(remedy.doomed)} and run the same command again"
    command = f"`{remedy.command()}`"
    return f"delete {doomed} and make it again: {command}" if doomed else f"make it: {command}"


def _remedy(path: Path | str, experiment: str, data: str) -> _Remedy | None:
    """The remedy for a file that a rule of the project in this folder makes; None for any other."""
    if not os.path.isfile("Snakefile"):
        return None
    match _below("results", path):
        case ["tables", name]:
            table = f"results/tables/{name}"
            return _Remedy(table, (table,), experiment)
        case [name, *parts]:
            return _of_results(name, *parts)
    parts = _below(data, path)
    remedy = _of_data(Path(data), *parts) if parts else None
    return remedy and remedy._replace(experiment=experiment)


def _below(root: str, path: Path | str) -> tuple[str, ...]:
    """The names on the way from a folder to a file below it; none for one elsewhere. Links are not
    followed: rules name files as they are typed.
    """
    place = Path(os.path.abspath(path))
    root = os.path.abspath(root)
    return place.relative_to(root).parts if place.is_relative_to(root) else ()


def _of_results(name: str, *parts: str) -> _Remedy | None:
    """The remedy for a file of an experiment."""
    root = f"results/{name}"
    path = "/".join((root, *parts))
    match parts:
        case _ if not os.path.isfile(f"configs/{name}.yaml"):
            return None
        case ["shards", vocabulary, _, _, _, *_]:
            pair = "/".join((root, *parts[:5]))
            return _Remedy(pair, (pair, f"{root}/shards/{vocabulary}/index.json"), name)
        case ["shards", vocabulary, *_]:
            return _Remedy(path, (f"{root}/shards/{vocabulary}/index.json",), name)
        case ["models", system, *_]:
            return _of_model(name, system)
        case ["costs", "train", times] if times.endswith(TIMES):
            return _of_model(name, times.removesuffix(TIMES))
        case ["text" | "vocab", _, *_]:
            return _Remedy(path, (path,), name, after="text")
        case ["scores" | "reports", _, *_]:
            return _Remedy(path, (path,), name)
        case ["costs" | "state", _, *_]:
            return _Remedy(path)
    return None


def _of_model(experiment: str, system: str) -> _Remedy:
    folder = f"results/{experiment}/models/{system}"
    return _Remedy(folder, (f"{folder}/model.json",), experiment)


def _of_data(data: Path, *parts: str) -> _Remedy | None:
    """The remedy for a download, or for a file of the demo's data, which are made as a whole."""
    path = str(data.joinpath(*parts))
    match parts:
        case [*_, name] if name.endswith(LOCK):
            return _Remedy(path)
        case ["embedded", *_]:
            return _Remedy(str(data / "embedded"), (str(data / "embedded" / "manifest.json"),))
        case ["evalsets", _, _, *file] if manifest := _manifest(data.joinpath(*parts[:3]), file):
            return _Remedy(manifest, (manifest,))
        case ["evalsets", _, _, *_, name] if not name.endswith(MANIFEST):
            return _Remedy(path, ("evalsets",))
        case ["opus" | "evalsets", _, _, _, *_]:
            return _Remedy(path, (path,))
    return None


def _manifest(folder: Path, file: list[str]) -> str:
    """The manifest of the unit that holds a file of an evaluation set, or ''."""
    name = f'"{"/".join(file)}"'
    for path in folder.glob(f"*{MANIFEST}"):
        if name in path.read_text(encoding="utf-8", errors="replace"):
            return str(path)
    return ""
