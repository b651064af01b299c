"""Command-line flags made from the signature of a function.

    def index(training: list[Path], out: Annotated[Path, "list to write", Writes()]) -> None:
        "List the shards of an experiment."

A parameter is the flag `--training`; it is required unless it has a default. Its type says what it
takes. In `Annotated` a text is its help, and an object of a class below says more about it.
"""

import argparse
import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from ems.base.outputs import FlagPath, Writes

Command = Callable[..., None]
REQUIRED = inspect.Parameter.empty
PAGE = Path("docs/cli.md")
OPENING = """# Commands

Made from `ems/commands/` by `make pages`; do not edit this page. The rules of
the workflow call these commands, so most of them are rarely typed. `ems COMMAND --help` prints the
flags of one.
"""


class Mark(Enum):
    """What else a flag may be."""

    NAME = "a name, which is a part of paths"
    PLACE = "a text that is a path to read, unless it is an address or a name"
    STREAM = "a path, or - for standard input or output"
    AROUND = "a folder to read in which the command may also write"
    POSITIONAL = "a word without a flag before it"
    HIDDEN = "not in the help"


@dataclass(frozen=True)
class Imported:
    """A function of a module that is imported when it is called. As a note of a flag: it returns
    the choices of the flag, and only the command that runs calls it.
    """

    module: str
    function: str

    def __call__(self, *arguments: Any) -> Any:
        return getattr(import_module(self.module), self.function)(*arguments)


@dataclass(frozen=True)
class Bounds:
    """The argparse type of a whole number from `low` to `high`, in plain digits."""

    low: int
    high: int

    def __call__(self, text: str) -> int:
        if not re.fullmatch("-?[0-9]{1,20}", text) or not self.low <= int(text) <= self.high:
            expected = f"expected a whole number from {self.low:,} to {self.high:,}"
            raise argparse.ArgumentTypeError(f"{expected}, found {text[:40]!r}")
        return int(text)


def number(text: str) -> float:
    """Return a finite number. Raises argparse's error for anything else."""
    try:
        if math.isfinite(value := float(text)):
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected a number, found {text[:40]!r}")


def path(text: str) -> Path:
    """Return the path of an argument. Raises argparse's error for an empty text."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, found an empty text")
    return Path(text)


@dataclass(frozen=True)
class Assignment:
    """The argparse type of a word like NAME=FOLDER, its `form`; `value` makes the second half."""

    form: str
    value: Callable[[str], Any]

    def __call__(self, text: str) -> tuple[str, Any]:
        name, _, value = text.partition("=")
        if not (name and value):
            raise argparse.ArgumentTypeError(f"expected {self.form}, found {text!r}")
        return name, self.value(value)


@dataclass(frozen=True)
class Flag:
    """A parameter of a command, with what `Annotated` says about it."""

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
    def shows_default(self) -> bool:
        """True if there is a default that says something."""
        return self.default not in (REQUIRED, None, "", (), False)

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the flag to a parser."""
        options = self.options()
        options["help"] = (
            self.note(str) or ""
        ) + f" (default: {self.default})" * self.shows_default
        if Mark.HIDDEN in self.notes:
            options["help"] = argparse.SUPPRESS
        if Mark.POSITIONAL in self.notes:
            options.setdefault("metavar", None if "choices" in options else self.label)
            if self.default is not REQUIRED:
                options |= {"nargs": "?", "default": self.default}
            parser.add_argument(self.name, **options)
        elif self.default is REQUIRED:
            parser.add_argument(self.label, required=True, **options)
        else:
            default = list(self.default) if get_origin(self.type) is list else self.default
            parser.add_argument(self.label, default=default, **options)

    def options(self) -> dict[str, Any]:
        """Return the options of argparse that the type gives."""
        origin, parts = get_origin(self.type), get_args(self.type)
        if self.type is bool:
            return {"action": "store_true"}
        if origin is Literal:
            return {"choices": parts}
        if choices := self.note(Imported):
            return {"choices": list(choices())}
        paths = Path in (self.type, *parts)
        many = {"nargs": "+" if self.default is REQUIRED else "*"}
        if origin is dict:
            form = "NAME=FOLDER" if paths else "NAME=TEXT"
            return {"type": Assignment(form, parts[1]), "metavar": form, **many}
        kind = self.note(Bounds) or (path if paths else str)
        if float in (self.type, *parts):
            kind = number
        several = {"action": "extend", **many}  # typed twice, the first is not forgotten
        return {"type": kind, **(several if origin is list else {})}

    def outputs(self, value: Any) -> Iterator[FlagPath]:
        """Yield the places that the command writes for a value of the flag."""
        writes = self.note(Writes)
        if writes and value is not None and not self._is_stream(value):
            yield from writes.paths(self.label, value)

    def _is_stream(self, value: Any) -> bool:
        return Mark.STREAM in self.notes and value == Path("-")

    def inputs(self, value: Any) -> Iterator[FlagPath]:
        """Yield the places that the command reads for a value of the flag."""
        if self.note(Writes) or Mark.AROUND in self.notes or self._is_stream(value):
            return
        named = value.items() if isinstance(value, dict) else ()
        items = [(f"{self.label} {name}", item) for name, item in named]
        items += [(self.label, item) for item in (value if isinstance(value, list) else [value])]
        for label, item in items:
            if isinstance(item, Path) or (Mark.PLACE in self.notes and item):
                yield FlagPath(label, Path(item))


def flags_of(command: Command) -> list[Flag]:
    """Return the flags of a function, in the order of its parameters."""
    flags = []
    for each in inspect.signature(command).parameters.values():
        annotated = get_origin(each.annotation) is Annotated
        kind, *notes = get_args(each.annotation) if annotated else (each.annotation,)
        flags.append(Flag(each.name, kind, each.default, tuple(notes)))
    return flags


def _of_every_command(
    log: Annotated[Path | None, "file for the log lines, besides the terminal", Writes()] = None,
    costs: Annotated[Path | None, "JSON file for the seconds and the memory", Writes()] = None,
) -> None:
    """Hold the flags that every command has; the command line itself uses them."""


SHARED = flags_of(_of_every_command)


def parse(
    commands: dict[str, Command], description: str, arguments: list[str]
) -> tuple[str, dict[Flag, Any]]:
    """Return the name of a command and the values of its flags, those of every command included.

    Exits with status 2 and the usage for a mistake. Only the named command gets its flags: no other
    one has to look up its choices.
    """
    parser = argparse.ArgumentParser("ems", description=description)
    parsers = parser.add_subparsers(title="stages", required=True, metavar="stage", dest="stage")
    name = next((word for word in arguments if word in commands), "")
    flags = [*flags_of(commands[name]), *SHARED] if name else []
    for each, command in commands.items():
        text = _summary(command)
        own = parsers.add_parser(each, help=text, description=text)
        for flag in flags if each == name else ():
            flag.add_to(own)
    values = vars(parser.parse_args(arguments))
    mappings = {flag.name for flag in flags if get_origin(flag.type) is dict}
    values |= {each: dict(values[each]) for each in mappings}
    return name, {flag: values[flag.name] for flag in flags}


def _summary(command: Command) -> str:
    """Return the first sentence of a docstring as a phrase: "encode lines" of "Encode lines."."""
    text = " ".join((inspect.getdoc(command) or "").partition("\n\n")[0].split()).rstrip(".")
    return text[:1].lower() + text[1:]


def page_of(commands: dict[str, Command], sections: dict[str, str]) -> str:
    """Return docs/cli.md: every command with its flags; a command may open a section."""
    lines = []
    for name, command in commands.items():
        if name in sections:
            lines += ["", f"## {sections[name]}"]
        lines += ["", f"### ems {name}", "", inspect.getdoc(command) or "", ""]
        lines += _rows(flags_of(command))
    lines += ["", "## Flags of every command", "", *_rows(SHARED), ""]
    return OPENING + "\n".join(lines)


def _rows(flags: list[Flag]) -> Iterator[str]:
    """Yield the rows of a table of flags."""
    yield from ["| flag | value | default | meaning |", "|---|---|---|---|"]
    for flag in flags:
        if Mark.HIDDEN not in flag.notes:
            default = f"`{flag.default}`" if flag.shows_default else ""
            default = "required" if flag.default is REQUIRED else default
            cells = [f"`{flag.label}`", _value(flag), default, flag.note(str) or ""]
            yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _value(flag: Flag) -> str:
    """Say in words what a flag takes."""
    options = flag.options()
    if options.get("action") == "store_true":
        return "no value"
    several = ", several" if "nargs" in options else ""
    if "choices" in options:
        return ", ".join(f"`{choice}`" for choice in options["choices"]) + several
    if "metavar" in options:
        return f"`{options['metavar']}`{several}"
    kind = options["type"]
    if isinstance(kind, Bounds):
        return f"whole number from {kind.low:,} to {kind.high:,}{several}"
    return {str: "text", number: "number"}.get(kind, "path") + several
