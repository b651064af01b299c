"""Runs `ems` and `snakemake` command lines in forked processes: milliseconds each instead of the
seconds that the imports take.

A server process imports the libraries once, with one thread, and forks for each command. As root it
first becomes the user `nobody`, so that a mistake in the code under test cannot touch the machine.

    PYTHONPATH=tests python -m fuzz.forks    reads a JSON object per line and writes one

Faults planted in a command let the tests see the campaign notice each of them. All patch the
standard library or NumPy, so that they outlive a rewrite of ems.
"""

import builtins
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

INPUT = Path("text/lines.de")
replace, opened = os.replace, io.open


def _fail(message):
    print(f"00:00:00 error: {message}", file=sys.stderr)
    os._exit(1)


def _change_the_input(target):
    """As many bytes as before, and the same time."""
    info = INPUT.stat()
    INPUT.write_bytes(bytes(sorted(INPUT.read_bytes())))
    os.utime(INPUT, ns=(info.st_atime_ns, info.st_mtime_ns))


def _changed(change):
    """Replace the written vectors by changed ones."""

    def rewrite(target):
        if target.suffix == ".npy":
            np.save(target, change(np.load(target)))

    return rewrite


READING = {  # what happens when the input is opened
    "raise a KeyError": lambda: {}["absent"],
    "speak Python": lambda: _fail("cannot go on: 'NoneType' object has no attribute 'x'"),
    "fail in two lines": lambda: _fail("expected one line,\nfound two"),
    "say nothing": lambda: _fail("failed"),
    "end with another status": lambda: os._exit(77),
    "hang": lambda: time.sleep(1000),
}
WRITING = {  # what happens when an output is there
    "write beside the output": lambda target: Path("stray.txt").write_text("x"),
    "write above the project": lambda target: Path("../stray.txt").write_text("x"),
    "leave a temporary file": lambda target: Path(f"{target}.part").write_text("x"),
    "delete the input": lambda target: INPUT.unlink(),
    "touch the input": lambda target: INPUT.write_bytes(INPUT.read_bytes()),
    "change the input": _change_the_input,
    "write and fail": lambda target: _fail(f"expected to go on: {target.write_bytes(b'another')}"),
    "run what a name says": lambda target: os.system("touch pwned"),
    "leave out a row": _changed(lambda array: array[1:]),
    "write what is no number": _changed(lambda array: array * float("nan")),
}
FAULTS = [*READING, *WRITING]
KILLED = "leave the first checkpoint"  # no fault: how a training is stopped
WRITING[KILLED] = lambda target: (
    target.name.startswith("step-") and os.kill(os.getpid(), signal.SIGKILL)
)


def plant_fault(fault):
    def open_and_more(path, *rest, **names):
        if str(path).endswith(INPUT.name):
            READING[fault]()
        return opened(path, *rest, **names)

    def replace_and_more(source, target, *rest, **names):
        replace(source, target, *rest, **names)
        WRITING[fault](Path(target))

    if fault in READING:
        io.open = builtins.open = open_and_more
    else:
        os.replace = replace_and_more


ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
MEMORY, FILE_SIZE = 2 << 30, 256 << 20  # bytes that a command may have, beyond the libraries'
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
ENVIRONMENT["EMS_TRACEBACK"] = "1"  # or a fault would not say where it comes from
ENVIRONMENT["HF_HUB_OFFLINE"] = "1"  # or it would ask for a model five times
ENVIRONMENT |= dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")  # no network
MAINS = {"ems": "ems.commands.cli", "snakemake": "snakemake.cli"}
HANG = -1000  # the status of a command that did not end
IDLE = 4  # seconds without any work after which a command is taken to wait for ever


class Done(NamedTuple):
    """How a command ended: its exit status (negative: the signal, or HANG) and what it printed."""

    status: int
    out: str
    err: str
    seconds: float = 0.0


class Forks:
    """The server, as seen from the process that uses it."""

    def __init__(self) -> None:
        self.scratch = tempfile.mkdtemp(prefix="ems-fuzz-")
        os.chmod(self.scratch, 0o755)
        own(Path(self.scratch))
        environment = {**os.environ, **ENVIRONMENT, "HOME": self.scratch, "TMPDIR": self.scratch}
        for name in ("TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME", "MPLCONFIGDIR"):
            environment[name] = f"{self.scratch}/cache"
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
        options = {"env": environment, "cwd": self.scratch, "text": True}
        options |= {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.server = subprocess.Popen([sys.executable, "-m", "fuzz.forks"], **options)
        self.user = json.loads(self._answer())["user"]

    def _answer(self) -> str:
        line = self.server.stdout.readline()
        assert line, "the server of the forks has died"
        return line

    def run(self, words: list[str], folder: Path, seconds: float = 60, plant: str = "") -> Done:
        """Run a command of `ems` or `snakemake`; `plant`: a fault, which breaks something first."""
        asked = {"words": words, "folder": str(folder), "seconds": seconds, "plant": plant}
        self.server.stdin.write(json.dumps(asked) + "\n")
        self.server.stdin.flush()
        return Done(**json.loads(self._answer()))

    def close(self) -> None:
        self.server.stdin.close()
        self.server.wait()
        subprocess.run(["rm", "-rf", self.scratch], check=True)


def own(path: Path) -> None:
    """Give a path to the user that the commands run as."""
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def _become_nobody() -> None:
    """Leave root: read every file (Python itself may lie in root's home), write only one's own."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
    reads = 1 << 2  # CAP_DAC_READ_SEARCH as effective, permitted, inheritable
    libc.capset(header, (ctypes.c_uint32 * 6)(reads, reads, reads, 0, 0, 0))
    libc.prctl(47, 2, 2, 0, 0)  # PR_CAP_AMBIENT, so that programs which it starts can read too


def _serve() -> None:
    if os.geteuid() == 0:
        _become_nobody()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _import_everything()
    print(json.dumps({"user": os.geteuid()}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(_run(**json.loads(line))), file=answers, flush=True)


def _import_everything() -> None:
    """Import every module of ems that can be imported here, and what starts slowly."""
    import ems

    for module in pkgutil.walk_packages(ems.__path__, "ems."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    for name in ("snakemake.cli", "matplotlib.pyplot", "pandas.io.formats.style", "torch", "jieba"):
        importlib.import_module(name)
    sys.modules["torch"].set_num_threads(1)
    sys.modules["jieba"].initialize()
    gc.collect()
    gc.freeze()  # or each fork would copy the pages of all objects at its first collection


def _run(words: list[str], folder: str, seconds: float, plant: str) -> dict:
    streams = [os.memfd_create(name) for name in ("out", "err")]
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(words, folder, streams, plant)
    status = _wait(child, begin + seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it started and left behind
    texts = (os.pread(stream, 1 << 20, 0).decode("utf-8", "backslashreplace") for stream in streams)
    done = {"status": status, "seconds": time.monotonic() - begin}
    done |= dict(zip(("out", "err"), texts, strict=True))
    for stream in streams:
        os.close(stream)
    return done


def _wait(child: int, deadline: float) -> int:
    """The exit status of a child, which is ended at the deadline or when it only waits."""
    handle, work, since = os.pidfd_open(child), 0.0, time.monotonic()
    while not select.select([handle], [], [], 0.25)[0]:
        now = time.monotonic()
        if work != (work := _work(child)):
            since = now
        if now > min(deadline, since + IDLE):
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(handle)
            return HANG
    os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _work(child: int) -> float:
    """A number that changes as long as a process or one of its children runs or could."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(child)
        for process in (parent, *parent.children(recursive=True)):
            busy = process.status() != psutil.STATUS_SLEEPING
            total += sum(process.cpu_times()[:2]) + (time.monotonic() if busy else 0)
    return total


def _become(words: list[str], folder: str, streams: list[int], plant: str) -> None:
    """Turn this fork into the command; does not return."""
    status = 1
    try:
        os.setsid()
        os.chdir(folder)
        scratch = str(Path(folder).parent.parent / "tmp")
        os.environ["HOME"] = os.environ["TMPDIR"] = tempfile.tempdir = scratch
        for at, stream in enumerate((os.open(os.devnull, os.O_RDONLY), *streams)):
            os.dup2(stream, at)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", errors="strict", closefd=False)
        sys.stderr = os.fdopen(2, "w", errors="backslashreplace", buffering=1, closefd=False)
        memory = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limits = {"AS": memory + MEMORY, "FSIZE": FILE_SIZE, "CORE": 0}
        for name, most in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
        sys.argv = words
        if plant:
            plant_fault(plant)
        module = importlib.import_module(MAINS[words[0]])
        status = module.main(words[1:]) or 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status & 0xFF)


if __name__ == "__main__":
    _serve()
