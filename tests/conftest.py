"""Fixtures of all tests: a copy of the project to run commands in, and the rule about skipping."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import yaml
from made import forked

from ems.base.processes import look_rarely
from ems.text.segmenters.base import check_available, load, segmenter

if TYPE_CHECKING:
    from made.train import Toy
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"  # real corpora, where a developer has them
look_rarely()
# tests run in parallel; more threads would wait for each other's cores
os.environ.update({"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"})
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
os.environ["XDG_DATA_HOME"] = os.devnull  # no table of OPUS that the developer has updated
LONG = [
    *("workflow_ems62", "workflow", "dvc", "workflow_killed", "perf", "slurm", "gpu"),
    "site",
    *("slurm_sites", "fuzz", "workflow_mirror", "mteb", "mteb_bitext"),
    *("workflow_start", "export", "document_corpora", "any_pairs"),
    *("lightweight", "multiway", "distributed_train", "remotes"),
    *("forecast", "devices", "light", "serve", "use", "clients", "spoilt_json"),
    *("bulk", "shared_data", "train_stop", "site"),
]  # files of half a minute or more, about the longest first


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the long files first, so that no worker waits for another one at the end."""
    ranks = {f"test_{name}": rank for rank, name in enumerate(LONG)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(LONG)))


STARTED: list[subprocess.Popen[str]] = []  # by `Project.start` in the test that runs


def needs(present: object, message: str) -> None:
    """Skip the test when `present` is false; fail it when EMS_NO_SKIP is set (as in CI)."""
    if present:
        return
    if os.environ.get("EMS_NO_SKIP"):
        pytest.fail(f"may not be skipped here: {message}")
    pytest.skip(message)


class Project:
    """A copy of the working tree, with the commands that users type."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "PYTHONPATH": str(folder)}
        # a developer's set-up must not change a test
        for name in ("SNAKEMAKE_PROFILE", "SNAKEMAKE_OUTPUT_CACHE"):
            self.environment.pop(name, None)

    def run(self, *command: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run a command in the project; fail with its output unless it exits with `expect`.

        Snakemake and, without a cluster, `ems` are forked, unless others are first on PATH.
        """
        done = self._done(command)
        if expect is not None and done.returncode != expect:
            tail = (done.stdout + done.stderr)[-6000:]
            pytest.fail(f"{' '.join(command)} exited with {done.returncode}:\n{tail}")
        return done

    def _done(self, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        environment = dict(self.environment)
        if self._is_ours("snakemake") and self._is_ours("ems"):
            if not re.search("--profile|sbatch", " ".join(command)):  # Slurm hands PATH to its jobs
                environment["PATH"] = f"{forked.folder()}{os.pathsep}{environment['PATH']}"
            elif command[0] == "snakemake":
                command = (str(forked.folder() / "snakemake"), *command[1:])
        options = {"env": environment, "capture_output": True, "text": True}
        return subprocess.run(command, cwd=self.folder, **options)

    def _is_ours(self, program: str) -> bool:
        """Return whether the first program of this name on PATH is the installed one."""
        found = shutil.which(program, path=self.environment["PATH"])
        return found == str(Path(sys.executable).with_name(program))

    def snakemake(self, *arguments: str, expect: int | None = 0) -> str:
        """Run Snakemake and return its output."""
        done = self.run("snakemake", *arguments, expect=expect)
        return done.stdout + done.stderr

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a command in its own session, with output to `started.log`."""
        with open(self.folder / "started.log", "w") as log:
            options = {"stdout": log, "stderr": log, "text": True, "start_new_session": True}
            run = subprocess.Popen(command, cwd=self.folder, env=self.environment, **options)
        STARTED.append(run)
        return run

    def jobs(self) -> Iterator[tuple[psutil.Process, set[str]]]:
        """Yield the running `ems` processes of the project and their arguments."""
        for process in psutil.process_iter(["cmdline", "cwd"]):
            words = process.info["cmdline"] or []
            ours = process.info["cwd"] == str(self.folder.resolve())
            if ours and any(word.endswith("/ems") for word in words[:2]):
                yield process, set(words)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that occurs once in the file."""
        path = self.folder / name
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} is in {name} {text.count(old)} times"
        path.write_text(text.replace(old, new))

    def select(self, name: str, value: object) -> None:
        """Make this the project's experiment instead of `tiny`."""
        path = self.folder / "configs" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
        self.edit("config.yaml", "experiment: tiny\n", f"experiment: {name}\n")

    def tables(self) -> dict[str, bytes]:
        """Map the name of each table to its content."""
        files = sorted((self.folder / "results/tables").glob("[!.]*"))
        return {path.name: path.read_bytes() for path in files}


def write_program(path: Path, text: str) -> None:
    """Write an executable script; its first line names the interpreter."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def planned(output: str) -> dict[str, int]:
    """Return the number of jobs by rule from the output of a dry run."""
    return {m[1]: int(m[2]) for m in re.finditer(r"^(\w+) +(\d+)$", output, re.MULTILINE)}


def copy_project(folder: Path) -> Project:
    """Copy the files that git tracks or would add; the experiment is `tiny`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.check_output(command, cwd=ROOT, text=True)
    compiled = [str(path.relative_to(ROOT)) for path in (ROOT / "ems").rglob("*.pyc")]
    for name in filter(None, [*listing.split("\0"), *compiled]):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    project = Project(folder)
    project.edit("config.yaml", "experiment: demo\n", "experiment: tiny\n")
    return project


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that the first worker makes, and that the others wait for and share."""
    root = factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder, finished = root / name, root / f"{name}.made"
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not finished.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            finished.touch()
    return folder


def copied(project: Project, folder: Path) -> Project:
    """Return a copy of a project in a new folder, with file times."""
    shutil.copytree(project.folder, folder, symlinks=True)
    return Project(folder)


@pytest.fixture(autouse=True)
def nothing_outlives_its_test() -> Iterator[None]:
    """Kill the processes left by a failed test; reset the number of threads, with which PyTorch's
    matrix products differ in their last bits; forget the programs found on the PATH of a test.
    """
    for found in (check_available, load, segmenter):
        found.cache_clear()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    yield
    while STARTED:
        run = STARTED.pop()
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which `snakemake all` has run `tiny`. Tests must not change it."""

    def run(folder: Path) -> None:
        copy_project(folder).snakemake("all")

    original = Project(made_once(tmp_path_factory, "tiny", run))
    return copied(original, tmp_path_factory.mktemp("tiny") / "project")


@pytest.fixture
def fresh(tmp_path: Path) -> Project:
    """A project in which nothing has run yet."""
    return copy_project(tmp_path)


@pytest.fixture
def finished(tiny_run: Project, tmp_path: Path) -> Project:
    """A copy of `tiny_run` that a test may change."""
    return copied(tiny_run, tmp_path / "project")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """A function (name, shell lines) that puts a command first on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "commands"), prepend=os.pathsep)
    return lambda name, text: write_program(tmp_path / "commands" / name, f"#!/bin/sh\n{text}\n")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> None:
    """Capture INFO messages of EMS in `caplog`."""
    caplog.set_level("INFO", "ems")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A real browser."""
    from made.browser import launched

    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def demo_mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated data of the demo. Tests must not change it."""
    from ems.corpora.demo.mirror import write_mirror

    return made_once(tmp_path_factory, "demo-mirror", write_mirror)


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> "Toy":
    """Shards, a vocabulary and settings to train on in seconds. Tests must not change it."""
    from made.train import Toy  # PyTorch: not for tests that do without

    return Toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def never_killed(toy: "Toy", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of an uninterrupted run of `toy`."""
    return toy.train(tmp_path_factory.mktemp("whole"))
