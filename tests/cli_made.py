"""The command line as its users call it, in a folder of settings."""

import shutil
import subprocess
import sys

from conftest import ROOT


class Cli:
    """`python -m ems.cli` in a folder with the settings of the project."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(ROOT / "schemas", folder / "schemas")
        (folder / "configs").mkdir()
        shutil.copy(ROOT / "configs" / "tiny.yaml", folder / "configs")
        shutil.copy(ROOT / "config.yaml", folder)

    def __call__(self, *arguments, expect=0):
        """The lines on stderr of a call that must exit with `expect`."""
        command = [sys.executable, "-m", "ems.cli", *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == expect, done.stderr
        assert done.stdout == ""
        return done.stderr.splitlines()

    def error(self, *arguments):
        """The message of a call that must fail with one line, as the last line of the log too."""
        log = self.folder / "logs" / "job.log"
        lines = self(*arguments, "--log", log, expect=1)
        assert not any(line.startswith(("Traceback", "  File")) for line in lines)
        assert "".join(lines).count("error: ") == 1
        assert log.read_text(encoding="utf-8").splitlines() == lines
        return lines[-1].partition(" error: ")[2]
