"""The command line as its users call it, in a folder of settings, and the recipes of docs/."""

import io
import re
import shutil
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from conftest import ROOT
from made.corpora import write_lines

from ems.commands.cli import main


class Cli:
    """`ems` in a folder with the settings of the project; a process of its own costs a second."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(ROOT / "schemas", folder / "schemas")
        (folder / "configs").mkdir()
        shutil.copy(ROOT / "configs" / "tiny.yaml", folder / "configs")
        shutil.copy(ROOT / "config.yaml", folder)

    def run(self, *arguments, expect=0):
        """Return what a call prints on stdout and stderr; it must exit with `expect`."""
        words = list(map(str, arguments))
        out, err = io.StringIO(), io.StringIO()
        with chdir(self.folder), redirect_stdout(out), redirect_stderr(err):
            try:
                status = main(words)
            except SystemExit as end:
                status = end.code
        assert status == expect, err.getvalue()
        return out.getvalue(), err.getvalue()

    def start(self, *arguments, **options):
        command = [sys.executable, "-m", "ems.commands.cli", *map(str, arguments)]
        return subprocess.Popen(command, cwd=self.folder, **options)

    def kill_once(self, condition, *arguments):
        """Start a call in a process of its own, and kill it once a condition holds."""
        run = self.start(*arguments, stderr=subprocess.DEVNULL)
        wait_for(condition, run)
        run.kill()
        run.wait()

    def __call__(self, *arguments, expect=0):
        """Return the lines on stderr of a call that prints nothing else."""
        out, err = self.run(*arguments, expect=expect)
        assert out == ""
        return err.splitlines()

    def error(self, *arguments):
        """Return the message of a call that must fail with one line, the last one of the log."""
        log = self.folder / "logs" / "job.log"
        lines = self(*arguments, "--log", log, expect=1)
        assert not any(line.startswith(("Traceback", "  File")) for line in lines)
        assert "".join(lines).count("error: ") == 1
        assert log.read_text(encoding="utf-8").splitlines() == lines
        return lines[-1].partition(" error: ")[2]


def wait_for(condition, run):
    until = time.monotonic() + 60
    while not condition():
        assert run.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < until
        time.sleep(0.002)


def records(state):
    return len(list(state.glob("*/done/*.json")))


# --- recipes of docs/extend.md and docs/export.md: files with their names, programs, commands


PAGE = ROOT / "docs/extend.md"
INTEROP = ROOT / "docs/export.md"
FILE = re.compile(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    (\S.*)$", re.MULTILINE)


def section(heading: str, page: Path = PAGE) -> str:
    return page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]


def files(heading: str, page: Path = PAGE) -> dict[str, str]:
    return dict(FILE.findall(section(heading, page)))


def program(heading: str, page: Path = PAGE) -> str:
    """Return the one program of a recipe that is no file."""
    (found,) = PROGRAM.findall(FILE.sub("", section(heading, page)))
    return found


def commands(heading: str, page: Path = PAGE) -> list[str]:
    return COMMAND.findall(PROGRAM.sub("", FILE.sub("", section(heading, page))))


def write_files(heading: str, folder: Path, page: Path = PAGE) -> list[str]:
    written = files(heading, page)
    for name, text in written.items():
        write_lines(folder / name, text.splitlines())
    return list(written)
