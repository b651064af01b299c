"""Helpers of the scripts: checks before they start, a measurement in a fresh process, demo text."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from ems.base.errors import EmsError
from ems.base.processes import look_rarely
from ems.config.languages import pair_name

if TYPE_CHECKING:
    from ems.corpora.demo.texts import Material

look_rarely()  # in each script and measurement, as `ems` does


class FailedRun(SystemExit):
    """A failed measurement. It ends the program unless the script continues without it."""


def require_peer(modules: Iterable[str], extra: str, peer: str = "sentence-transformers") -> None:
    """End the program unless the peer can run here.

    `modules`: imports of the script; `extra`: the extra of pyproject.toml that installs them.
    """
    try:
        for name in modules:
            import_module(name)
    except Exception as error:  # a broken installation may raise any error
        reason = " ".join(str(error).split())
        sys.exit(
            f"{peer}, which is measured too, cannot run here ({reason}): "
            f"pip install '.[{extra}]', or leave it out with --no-peer"
        )


def require_segmenters(names: Iterable[str]) -> None:
    """End the program unless each of these segmenters can run here."""
    from ems.text.segmenters.base import check_available

    try:
        for name in names:
            check_available(name)
    except EmsError as error:
        sys.exit(str(error))


def figures(command: list[str], what: str) -> tuple[dict[str, Any], float]:
    """Return the JSON of the last line that a command prints, with its peak of RssAnon in MB.

    Raises `FailedRun` if the command fails; `what` names the measurement.
    """
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = [0]
    sampler = threading.Thread(target=watch, args=(run.pid, peak), daemon=True)
    sampler.start()
    output, _ = run.communicate()
    sampler.join()
    if run.returncode:
        raise FailedRun(f"{what} failed")
    return json.loads(output.splitlines()[-1]), peak[0] / 1e6


def watch(pid: int, peak: list[int]) -> None:
    """Keep in `peak` the highest sum of RssAnon, in bytes, of a process and its descendants."""
    while psutil.pid_exists(pid):
        try:
            process = psutil.Process(pid)
            # a child that has not yet started its program shares its parent's memory
            own, others = process.cmdline(), process.children(recursive=True)
            family = [pid, *(other.pid for other in others if other.cmdline() != own)]
            peak[0] = max(peak[0], sum(map(anon, family)))
            if process.status() == psutil.STATUS_ZOMBIE:
                return
        except psutil.NoSuchProcess:  # it or one of its tools has just ended
            pass
        time.sleep(0.03)


def anon(pid: int) -> int:
    """Return the anonymous resident memory of a process in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


def demo_lines(code: str) -> list[tuple[str, str]]:
    """Return 300 pairs of English and a language from the embedded demo corpus."""
    return demo_pairs(code)[:300]


def demo_pairs(code: str) -> list[tuple[str, str]]:
    """Return all training pairs of English and a language from the embedded demo corpus."""
    from ems.corpora.demo.mirror import train_pairs

    pairs = train_pairs(_demo(), code)
    return pairs if pair_name("en", code).startswith("en-") else [pair[::-1] for pair in pairs]


@cache
def _demo() -> "Material":
    """Generate the demo corpus without its other files, which take as long."""
    from ems.corpora.demo.texts import build

    return build()
