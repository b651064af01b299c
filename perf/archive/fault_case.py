"""A copy of the project in which an experiment runs, with a web server and a disk of its own."""

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml
from fault_mirror import Mirror, mirror_of
from pairs_made import ROOT

from ems.base.errors import EmsError
from ems.base.files import sha256_file
from ems.text.segmenters.base import check_available

LOOK = 0.1  # seconds between two looks at a run
# Of results/EXPERIMENT: what differs from run to run (a header's order in `embeddings`).
APART = ("logs", "costs", "state", "embeddings")


class Lost(Exception):
    """The documented commands do not bring a run to its end."""


@dataclass
class Run:
    """A Snakemake that was started in a case, in a session of its own."""

    process: psutil.Popen
    log: Path
    began: float = field(default_factory=time.monotonic)

    def alive(self) -> bool:
        """True until it has ended."""
        return self.process.poll() is None

    def lasts(self, seconds: float) -> bool:
        """Wait; True if it still runs then."""
        end = time.monotonic() + seconds
        while self.alive() and time.monotonic() < end:
            time.sleep(LOOK)
        return self.alive()

    def waiting(self, seconds: float) -> Iterator[None]:
        """Yield once in a while, until the time is over or it has ended."""
        end = time.monotonic() + seconds
        while self.alive() and time.monotonic() < end:
            yield
            time.sleep(LOOK)

    def family(self) -> list[psutil.Process]:
        """Its processes, itself first."""
        try:
            return [self.process, *self.process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def jobs(self) -> list[str]:
        """The `ems` commands that run, without their flags."""
        return [words_of(each)[-1] for each in self.family() if role_of(each) == "ems"]


@dataclass
class Case:
    """A copy of the project in which an experiment runs under faults."""

    folder: Path  # has the project and the output of every Snakemake
    experiment: str
    draw: random.Random
    mirror: Mirror
    command: list[str]  # of Snakemake, without what it is asked for
    words: list[str]  # what it is asked for
    environment: dict[str, str]
    stop: threading.Event  # the campaign was interrupted
    disk: Path | None = None  # a small disk that holds results/ and data/
    clock: str = ""  # what faketime adds to the clock of the next start
    now: str = ""  # what it adds to that of the one that runs
    starts: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def project(self) -> Path:
        """The folder in which its commands run."""
        return self.folder / "project"

    def start(self) -> Run:
        """Start Snakemake as a user does. Raises `Lost` after the campaign was interrupted."""
        if self.stop.is_set():
            raise Lost("interrupted")
        self.starts += 1
        self.now, self.clock = self.clock, ""
        log = self.folder / f"start-{self.starts}.log"
        with open(log, "w") as output:
            process = psutil.Popen(
                [*self.command, *self.words],
                cwd=self.project,
                env=self.environment | (clock_of(self.now) if self.now else {}),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return Run(process, log)

    def locked(self) -> bool:
        """True if a Snakemake runs here, or was killed here."""
        locks = self.project / ".snakemake/locks"
        return locks.is_dir() and any(locks.iterdir())


def clock_of(offset: str) -> dict[str, str]:
    """The variables that move a program's clock. `faketime` itself would stay as its parent."""
    shown = ["faketime", "-f", offset, "printenv", "LD_PRELOAD"]
    library = subprocess.run(shown, check=True, capture_output=True, text=True).stdout.strip()
    return {"LD_PRELOAD": library, "FAKETIME": offset}


def words_of(process: psutil.Process) -> list[str]:
    """The program of a process and, of `ems`, its command."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return [""]
    names = [Path(word).name for word in words[:3]]
    return ["ems", names[names.index("ems") + 1]] if "ems" in names[:-1] else names[:1] or [""]


def role_of(process: psutil.Process) -> str:
    """What a process is in the tree: "shell", "ems", or another "child" (Perl, a worker)."""
    program = words_of(process)[0]
    return {"bash": "shell", "sh": "shell", "ems": "ems", "": ""}.get(program, "child")


# --- the experiments


def tiny(value: dict[str, Any], address: str) -> None:
    """Fetch the corpora of `tiny` from the web server, and let it have a child in Perl."""
    value["sources"]["tatoeba"] = f"{address}/tatoeba"
    value["corpora"][0]["source"] = f"{address}/opus"
    try:
        check_available("moses")
        value["segmenters"]["default"] = "moses"
    except EmsError:
        pass


def small5(value: dict[str, Any], address: str) -> None:
    """Fetch the corpora of `small5` from the web server; less text and fewer steps."""
    value["sources"] = {"opus": f"{address}/opus", "tatoeba": f"{address}/tatoeba_v1"}
    for corpus in value["corpora"]:
        corpus["max_pairs"] = 5000
        if "source" in corpus:  # OPUS's release has other files
            corpus["source"] = value["sources"]["opus"]
    value["vocabulary"]["sample_lines"] = 50_000
    value["train"] |= {"steps": 120, "warmup_steps": 20, "validate_every": 60}
    value["train"] |= {"batch_pairs": 64, "checkpoint_every": 20}


EXPERIMENTS: dict[str, Callable[[dict[str, Any], str], None]] = {"tiny": tiny, "small5": small5}


@dataclass
class Original:
    """An experiment as it is without faults."""

    project: Path  # a copy in which nothing has run
    mirror: Path  # what the web server serves
    sums: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    disk: int = 0  # bytes of a small disk; 0: none


# --- a copy of the project


def copy_tree(folder: Path) -> Path:
    """Copy the files that git knows or would add."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def environment_of(project: Path) -> dict[str, str]:
    """This environment, with the programs beside this Python and the source of the copy."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "PYTHONPATH": str(project), "NO_PROXY": "127.0.0.1"}
    left_out = ("SNAKEMAKE_PROFILE", "SNAKEMAKE_OUTPUT_CACHE")
    return {name: value for name, value in os.environ.items() if name not in left_out} | own


@contextmanager
def case_of(
    original: Original, experiment: str, folder: Path, words: list[str], stop: threading.Event
) -> Iterator[Case]:
    """A copy of the project, with its web server; its processes end with the block."""
    project = shutil.copytree(original.project, folder / "project")
    with ExitStack() as stack:
        disk = folder / "disk" if original.disk else None
        if disk:
            stack.enter_context(small_disk(disk, project, original.disk))
        mirror = stack.enter_context(mirror_of(original.mirror))
        path = project / f"configs/{experiment}.yaml"
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
        EXPERIMENTS[experiment](value, mirror.address)
        path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
        site = yaml.safe_load((project / "config.yaml").read_text(encoding="utf-8"))
        site["downloads"]["retries"] = 2  # so that `ems fetch` gives up within seconds
        (project / "config.yaml").write_text(yaml.safe_dump(site, sort_keys=False))
        case = Case(
            folder=folder,
            experiment=experiment,
            draw=random.Random(0),
            mirror=mirror,
            command=["snakemake", "--config", f"experiment={experiment}"],
            words=words,
            environment=environment_of(project),
            stop=stop,
            disk=disk,
        )
        try:
            yield case
        finally:
            for process in processes_in(project):
                with suppress(psutil.NoSuchProcess):
                    process.kill()


def processes_in(project: Path) -> list[psutil.Process]:
    """The processes that work in a folder."""
    place = str(project.resolve())
    return [each for each in psutil.process_iter(["cwd"]) if each.info["cwd"] == place]


@contextmanager
def small_disk(disk: Path, project: Path, size: int) -> Iterator[None]:
    """Put results/ and data/ of a project on a disk of some bytes (tmpfs; needs root)."""
    places = [project / "results", project / "data"]
    mounts = [["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]]
    mounts += [["--bind", str(disk / place.name), str(place)] for place in places]
    disk.mkdir()
    try:
        for words in mounts:
            for folder in [Path(words[-1])] + ([Path(words[1])] if words[0] == "--bind" else []):
                folder.mkdir(exist_ok=True)
            subprocess.run(["mount", *words], check=True, capture_output=True)
        yield
    finally:
        for place in [*places, disk]:
            subprocess.run(["umount", "--lazy", str(place)], capture_output=True)


def disks_work(folder: Path) -> bool:
    """True if this user may mount a disk."""
    folder.mkdir(parents=True)
    try:
        with small_disk(folder / "disk", folder, 1 << 20):
            return (folder / "results").is_mount()
    except (subprocess.CalledProcessError, OSError):
        return False


# --- what is compared


def sums_of(project: Path, experiment: str) -> dict[str, str]:
    """The checksum of every file that must be the same after any faults, by its name."""
    own = project / "results" / experiment
    folders = [path for path in own.iterdir() if path.name not in APART] if own.is_dir() else []
    folders += [project / "results/tables", project / "results/figures"]
    files = [path for folder in folders for path in folder.rglob("*")]
    files += project.glob("data/opus/**/*.zip")
    return {
        str(path.relative_to(project)): sha256_file(path)
        for path in files
        if path.is_file() and path.name != ".snakemake_timestamp"
    }


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """The files that are not the same, or that only one of both has."""
    names = expected.keys() | found.keys()
    return sorted(name for name in names if expected.get(name) != found.get(name))
