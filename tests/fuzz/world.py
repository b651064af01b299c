"""A small finished run of the workflow in a sandbox; a case spoils it, the next finds it whole.

sandbox/tmp             for what the commands write for a moment
sandbox/outer           what `..` reaches
sandbox/outer/project   where the commands run: settings, data, results, and odd/ with paths of
                        every kind
"""

import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from conftest import ROOT
from fuzz import stages
from fuzz.edits import EDITS, remove
from fuzz.forks import Forks, own
from fuzz.stages import COMMANDS, RESUMED, STATE, WIDE_COMMANDS

PROGRAM = ("Snakefile", "rules", "envs", "profiles", "slurm", "schemas")


class Entry(NamedTuple):
    """A path: its kind, and what would change if somebody wrote there."""

    kind: str
    mode: int
    content: str = ""  # of a file its hash, of a link its target
    size: int = 0
    changed: int = 0  # ns
    inode: int = 0

    def same(self, other: "Entry | None") -> bool:
        """Whether kind and content are the same, whenever it was written."""
        return other is not None and self[:4] == other[:4]


KINDS = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
KINDS |= {stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device"}


class World:
    """The sandbox with its finished run."""

    def __init__(self, folder: Path, forks: Forks, wide: bool = False) -> None:
        self.root, self.forks, self.commands = folder, forks, list(COMMANDS)
        self.outer, self.project = folder / "outer", folder / "outer" / "project"
        self.hashes: dict[tuple, str] = {}
        for name in ("tmp", "outer/project"):
            (folder / name).mkdir(parents=True)
        (self.outer / "precious.txt").write_text("not yours\n")
        for name in PROGRAM:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.project / name)
        stages.write_settings(self.project)
        stages.write_mirror(self.project / "mirror")
        self._own()
        for words in COMMANDS:
            done = forks.run(words, self.project, 120)
            assert done.status == 0, f"{' '.join(words)}: {done.err}"
        self._stop_a_training()
        if wide:
            self._widen()
        write_odd_paths(self.project / "odd")
        shutil.rmtree(folder / "tmp")
        (folder / "tmp").mkdir()
        self._own()
        self.master = self.listing()
        self.kept = folder.with_name(f"{folder.name}-kept")
        subprocess.run(["cp", "-a", folder, self.kept], check=True)

    def _widen(self) -> None:
        stages.write_wide_settings(self.project)
        self.forks.run(["ems", "demo-mirror", "--out", "data/embedded"], self.project)
        stages.narrow(self.project / "data" / "embedded")
        for words in WIDE_COMMANDS:
            done = self.forks.run(words, self.project, 120)
            if done.status == 0:
                self.commands.append(words)
            else:
                print(f"left out: {' '.join(words)}: {done.err[-300:]}")

    def _own(self) -> None:
        for folder, _, names in os.walk(self.root):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                own(Path(path))

    def _stop_a_training(self) -> None:
        """Leave the first checkpoint of a training that was killed."""
        for _ in range(20):
            self.forks.run(RESUMED, self.project, 120, stop=f"{self.project}/{STATE}/*/*/")
            if not (self.project / "models" / "stopped").exists():
                return
            shutil.rmtree(self.project / "models" / "stopped")
        raise AssertionError("the training was never killed in time")

    def listing(self) -> dict[str, Entry]:
        entries, folders = {}, [self.root]
        while folders:
            for path in folders.pop().iterdir():
                entries[str(path.relative_to(self.root))] = entry = self._entry(path)
                if entry.kind == "folder":
                    folders.append(path)
        return entries

    def _entry(self, path: Path) -> Entry:
        info = path.lstat()
        kind, mode = KINDS[stat.S_IFMT(info.st_mode)], stat.S_IMODE(info.st_mode)
        if kind != "file":
            target = os.readlink(path) if kind == "link" else ""
            return Entry(kind, mode, target, inode=info.st_ino)
        key = (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        if key not in self.hashes:
            with open(path, "rb") as reader:
                self.hashes[key] = hashlib.file_digest(reader, "sha256").hexdigest()
        return Entry(kind, mode, self.hashes[key], info.st_size, info.st_mtime_ns, info.st_ino)

    def reset(self) -> None:
        now = self.listing()
        for path in sorted(now):
            if not now[path].same(self.master.get(path)):
                remove(self.root / path)
        for path in sorted(self.master):
            if not os.path.lexists(self.root / path):
                subprocess.run(["cp", "-a", self.kept / path, self.root / path], check=True)

    def edit(self, edits: list[list[Any]]) -> None:
        """Spoil files of the project: each edit is [name of a function below, path, ...]."""
        for name, path, *rest in edits:
            place = self.project / path
            # an earlier edit may have left nothing to spoil
            with contextlib.suppress(OSError, ValueError, AttributeError, yaml.YAMLError):
                place.parent.mkdir(parents=True, exist_ok=True)
                EDITS[name](place, *rest)
                own(place)


def make_special(path: Path, kind: str) -> None:
    """A path that is neither file nor folder nor link; a device is the machine's null."""
    (mode,) = (mode for mode, name in KINDS.items() if name == kind)
    os.mknod(path, mode, os.makedev(1, 3) if kind == "device" else 0)
    path.chmod(0o666)


NAMES = ("a b.txt", "new\nline.txt", "ümläut.txt", "\udcff\udcfe.txt", "$(touch pwned).txt")
NAMES += ("quo'te\".txt", "-dash.txt", "{brace}.txt", "per%cent;touch pwned;.txt", "n" * 250)


def write_odd_paths(folder: Path) -> None:
    """A path of every kind that a flag may name."""
    (folder / "folder" / "sub").mkdir(parents=True)
    for name in ("file.txt", "folder/keep.txt", "folder/sub/keep.txt", *NAMES):
        (folder / name).write_text("keep this\nand this\n")
    (folder / "empty.txt").write_bytes(b"")
    (folder / "emptyfolder").mkdir()
    (folder / "dangling").symlink_to("nowhere")
    (folder / "link").symlink_to("file.txt")
    (folder / "loop").symlink_to("loop")
    (folder / "linkfolder").symlink_to("folder")
    for kind in ("fifo", "socket"):
        make_special(folder / kind, kind)
    if os.geteuid() == 0:  # as another user the machine's own will do
        make_special(folder / "null", "device")
