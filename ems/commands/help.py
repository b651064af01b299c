"""The help of `ems`: commands in groups, examples (examples.txt), hints for mistyped words."""

import argparse
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from ems import __version__
from ems.base.errors import EmsError, near
from ems.base.texts import is_plain

LONGEST = 1000  # characters of a message
STAGES = re.compile(r"^Stages.*\n\{stages\}\n\n", re.MULTILINE)  # in overview.txt


def summary(command: Callable[..., None]) -> str:
    """Return the first sentence of a command's docstring."""
    return " ".join((inspect.getdoc(command) or "").partition("\n\n")[0].split())


def overview(commands: dict[str, Callable[..., None]], stages: bool) -> str:
    """Return the first screen of the help, overview.txt; `stages` adds all other commands."""
    text = Path(__file__).with_name("overview.txt").read_text("utf-8")
    others = "\n".join(f"  {name}" for name in commands if f"\n  {name}\n" not in text)
    text = text.replace("{stages}", others) if stages else STAGES.sub("", text)
    row = re.compile(r"^  (\S+)$", re.MULTILINE)
    return row.sub(lambda name: f"  {name[1]:18}{summary(commands[name[1]])}", text)


def example(name: str) -> str:
    """Return the example of a command, broken before flags into lines of up to 80 characters."""
    from importlib.resources import files  # 10 ms, which `ems --help` does not need

    text = files(__package__).joinpath("examples.txt").read_text("utf-8")
    (line,) = (line for line in text.splitlines() if line.split()[1] == name)
    lines = [""]
    for part in re.split(" (?=--)", line):
        if len(lines[-1]) + len(part) > 74:
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n".join(lines)


class Parser(argparse.ArgumentParser):
    """The parser of one command, whose errors are two lines."""

    def check_flags(self, words: list[str]) -> None:
        """Exit with a suggestion for a flag that does not exist."""
        known = self._option_string_actions
        for flag in (word.partition("=")[0] for word in words):
            if flag == "--":
                return
            if flag.startswith("--") and not any(label.startswith(flag) for label in known):
                self.error(f"unknown flag {flag[:40]}{near(flag, known)}")

    def error(self, message: str) -> NoReturn:
        fail(self.prog, message)


def printable(text: str) -> str:
    """Escape unprintable characters and cut the middle out, so that a message is a short line."""
    text = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
    return "".join(c if is_plain(c) else repr(c)[1:-1] for c in text)


def version() -> str:
    """Return the versions of EMS, of its checkout if it is one, and of the encoder in it."""
    from ems.base.files import EXPORTED, read_json
    from ems.base.provenance import source_root
    from ems.base.records import Json
    from ems.use.encoder import own_model

    parts, root = [f"ems {__version__}"], source_root().parent
    with suppress(OSError):  # no git
        command = ["git", f"--git-dir={root}/.git", "rev-parse", "--short", "HEAD"]
        said = subprocess.run(command, capture_output=True, text=True)
        parts += [f"commit {said.stdout.strip()}"] if said.stdout else []
    with suppress(EmsError):
        model = own_model()
        parts.append(f"model {model.name} ({read_json(model / EXPORTED, Json)['identity']})")
    return ", ".join(parts)


def fail(program: str, message: str) -> NoReturn:
    """Exit with status 2 and two lines: where help is, and what is wrong."""
    flags = "COMMAND [FLAGS]" if program == "ems" else "[FLAGS]"
    sys.stderr.write(f"usage: {program} {flags} (see {program} --help)\n")
    sys.stderr.write(f"{program}: error: {printable(message)}\n")
    raise SystemExit(2)


def command_of(commands: dict[str, Callable[..., None]], arguments: list[str]) -> str:
    """Return the name of the command; print the overview or the version, and exit, without one."""
    name = arguments[0] if arguments else "--help"
    if name in commands:
        return name
    if name == "--version":
        print(version())
    elif {*arguments} <= {"-h", "--help", "--all"}:
        print(overview(commands, "--all" in arguments), end="")
    elif name.startswith("-"):
        fail("ems", f"expected a command first, found {name[:40]}")
    else:
        fail("ems", f"unknown command {name[:40]}{near(name, commands)}")
    raise SystemExit(0)
