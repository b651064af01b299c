"""Make command-line flags from the signature of a function.

    def index(training: list[Path], out: Annotated[Path, "list to write", Writes()]) -> None:
        "List the shards of an experiment."

The parameter `training` becomes the flag `--training`, required unless it has a default. Within
`Annotated`, a text is the help of the flag, and objects of the classes below are its properties.
"""

import argparse
import inspect
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal, get_args, get_origin

from ems.base.outputs import FlagPath, Writes
from ems.commands.help import Parser, command_of, example, summary

CommandFunction = Callable[..., None]
REQUIRED = inspect.Parameter.empty


class Mark(Enum):
    """Further properties of a flag."""

    NAME = "a name, which becomes part of paths"
    PLACE = "a text that is a path to read, unless it is an address or a name"
    STREAM = "a path, or - for standard input or output"
    AROUND = "a folder to read in which the command may also write"
    POSITIONAL = "a word without a flag before it"
    HIDDEN = "not in the help"


@dataclass(frozen=True)
class Choices:
    """The choices of a flag, returned by "module:function", which only a run calls."""

    function: str


@dataclass(frozen=True)
class Bounds:
    """An argparse type: a whole number from `low` to `high`, in plain digits."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"whole number from {self.low:,} to {self.high:,}"

    def __call__(self, text: str) -> int:
        if not re.fullmatch("-?[0-9]{1,20}", text) or not self.low <= int(text) <= self.high:
            raise argparse.ArgumentTypeError(f"expected a {self}, found {text[:40]!r}")
        return int(text)


def number(text: str) -> float:
    """Convert to a finite number. Raises `ArgumentTypeError` for anything else."""
    with suppress(ValueError):
        if math.isfinite(value := float(text)):
            return value
    raise argparse.ArgumentTypeError(f"expected a number, found {text[:40]!r}")


def path(text: str) -> Path:
    """Convert to a path. Raises `ArgumentTypeError` for an empty text."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, found an empty text")
    return Path(text)


@dataclass(frozen=True)
class Assignment:
    """An argparse type: a word like NAME=FOLDER (`form`); `value` converts the second half."""

    form: str
    value: Callable[[str], Any]

    def __call__(self, text: str) -> tuple[str, Any]:
        name, _, value = text.partition("=")
        if not (name and value):
            raise argparse.ArgumentTypeError(f"expected {self.form}, found {text!r}")
        return name, self.value(value)


@dataclass(frozen=True)
class Flag:
    """A parameter of a command with its annotations."""

    name: str
    type: Any
    default: Any
    notes: tuple[Any, ...]

    def note(self, kind: type) -> Any:
        """Return the first note of a class, or None."""
        return next((note for note in self.notes if isinstance(note, kind)), None)

    @property
    def label(self) -> str:
        """The flag as it is typed, or what the help calls a positional word."""
        positional = Mark.POSITIONAL in self.notes
        return self.name.upper() if positional else "--" + self.name.replace("_", "-")

    @property
    def shown_default(self) -> str:
        """The default as text; empty if it needs no mention."""
        return "" if self.default in (REQUIRED, None, "", (), False) else str(self.default)

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        shown = f" (default: {self.shown_default})" if self.shown_default else ""
        options = {"help": (self.note(str) or "") + shown, **self.options()}
        if Mark.HIDDEN in self.notes:
            options["help"] = argparse.SUPPRESS
        if self.default is not REQUIRED:
            default = self.default
            options["default"] = list(default) if get_origin(self.type) is list else default
        if Mark.POSITIONAL not in self.notes:
            parser.add_argument(self.label, required=self.default is REQUIRED, **options)
            return
        if "choices" not in options:
            options["metavar"] = self.label
        if self.default is not REQUIRED:
            options["nargs"] = "?"
        parser.add_argument(self.name, **options)

    def options(self) -> dict[str, Any]:
        """Return the options of `add_argument` for the type."""
        origin, parts = get_origin(self.type), get_args(self.type)
        if self.type is bool:
            return {"action": "store_true"}
        if origin is Literal:
            return {"choices": parts}
        if choices := self.note(Choices):
            return {"choices": resolve_name(choices.function)()}
        paths = Path in (self.type, *parts)
        many = {"nargs": "+" if self.default is REQUIRED else "*"}
        if origin is dict:
            form = "NAME=FOLDER" if paths else "NAME=TEXT"
            return {"type": Assignment(form, parts[1]), "metavar": form, **many}
        kind, options = str, {"metavar": self.name.rpartition("_")[2].upper()}
        if bounds := self.note(Bounds):
            kind, options = bounds, {"metavar": "N"}
        elif float in (self.type, *parts):
            kind, options = number, {"metavar": "NUMBER"}
        elif paths:
            kind, options = path, {"metavar": "PATH"}
        if origin is list:  # repeated flags add up
            options |= {"action": "extend", **many}
        return {"type": kind, **options}

    def outputs(self, value: Any) -> Iterator[FlagPath]:
        """Yield the paths that the command writes for a value of the flag."""
        writes = self.note(Writes)
        if writes and value is not None and not self._is_stream(value):
            yield from writes.paths(self.label, value)

    def _is_stream(self, value: Any) -> bool:
        return Mark.STREAM in self.notes and value == Path("-")

    def inputs(self, value: Any) -> Iterator[FlagPath]:
        """Yield the paths that the command reads for a value of the flag."""
        if self.note(Writes) or Mark.AROUND in self.notes or self._is_stream(value):
            return
        if isinstance(value, dict):
            items = [(f"{self.label} {name}", item) for name, item in value.items()]
        else:
            items = [(self.label, item) for item in (value if isinstance(value, list) else [value])]
        for label, item in items:
            if isinstance(item, Path) or (Mark.PLACE in self.notes and item):
                yield FlagPath(label, Path(item))


SHARED = [  # flags of every command, used by cli.py
    Flag("log", Path, None, ("file for the log, as well as the terminal", Writes())),
    Flag("costs", Path, None, ("JSON file for the time and memory used", Writes())),
]


def flags_of(command: CommandFunction) -> list[Flag]:
    """Make the flags of a function, in the order of its parameters."""
    flags = []
    for parameter in inspect.signature(command).parameters.values():
        annotation = parameter.annotation
        annotated = get_origin(annotation) is Annotated
        kind, *notes = get_args(annotation) if annotated else (annotation,)
        flags.append(Flag(parameter.name, kind, parameter.default, tuple(notes)))
    return flags


def parse(
    commands: dict[str, CommandFunction], arguments: list[str]
) -> tuple[str, dict[Flag, Any]]:
    """Return the name of the command and the values of its flags, or exit with status 2."""
    name = command_of(commands, arguments)
    form = argparse.RawDescriptionHelpFormatter
    parser = Parser(f"ems {name}", description=summary(commands[name]), formatter_class=form)
    flags = [*flags_of(commands[name]), *SHARED]
    for flag in flags:
        flag.add_to(parser)
    if {"-h", "--help"} & {*arguments}:
        parser.epilog = f"example:\n  {example(name)}"
    parser.check_flags(arguments[1:])
    given = vars(parser.parse_args(arguments[1:]))
    return name, {
        flag: dict(given[flag.name]) if get_origin(flag.type) is dict else given[flag.name]
        for flag in flags
    }
