"""Programs that filter pairs: `ems score`, and filters described by an OpusCleaner JSON file.

A program reads lines `first<TAB>second` and writes the lines to keep, unchanged and in order. It
reads one file and writes another, so memory does not grow with the text.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ems.base.errors import EmsError, failed_program, mistake
from ems.base.files import read_json
from ems.base.progress import Progress
from ems.base.records import Json, NonBlank, Record
from ems.config.text import CleanSettings, CommandFilter
from ems.text.filters import SHOWN, Batches, CleanReport, RowBatch, in_batches
from ems.text.tsv import Pair

AS_YAML = "PARAMETERS_AS_YAML"  # variable that holds all parameters, for filters that name it
Variable = Annotated[str, re.compile("[A-Za-z_][A-Za-z_0-9]*").fullmatch, "the name of a variable"]


class _Filter(Record):
    """A filter of OpusCleaner: the content of its JSON file."""

    type: NonBlank
    command: NonBlank
    parameters: dict[Variable, Json]


@dataclass(frozen=True)
class FilterCommand:
    """A program, run in `folder`; pairs that it removes are counted under `reason`."""

    reason: str
    words: tuple[str, ...]
    folder: Path
    scratch: Path

    def apply(self, batches: Batches, report: CleanReport) -> Iterator[RowBatch]:
        """Yield the kept pairs. Raises `EmsError` if the program fails or writes other lines."""
        with tempfile.TemporaryDirectory(".part", ".filter.", self.scratch) as name:
            read, lines, kept = (Path(name, each) for each in ("read.tsv", "lines", "kept.tsv"))
            with open(read, "w", encoding="utf-8") as texts, open(lines, "w") as numbers:
                for batch in batches:
                    texts.writelines(f"{first}\t{second}\n" for first, second, _ in batch)
                    numbers.writelines(f"{line}\n" for *_, line in batch)
            self._run(read, kept)
            yield from in_batches(self._passed(read, lines, kept, report))

    def _run(self, source: Path, out: Path) -> None:
        progress = Progress(f"filter {self.reason}", source.stat().st_size, "bytes")
        with (
            open(source, "rb") as reader,
            open(out, "wb") as writer,
            tempfile.TemporaryFile() as said,
        ):
            streams = {"stdin": reader, "stdout": writer, "stderr": said}
            try:
                process = subprocess.Popen(self.words, cwd=self.folder, **streams)
            except OSError as error:
                raise EmsError(f"filter {self.reason}: {self.words[0]}: {error.strerror}") from None
            try:
                while process.poll() is None:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(1)
                    at = os.lseek(reader.fileno(), 0, os.SEEK_CUR)  # shared with the program
                    progress.add(at - progress.done)
            finally:
                process.kill()
                status = process.wait()
            if status:
                raise failed_program(f"filter {self.reason}", status, said)
        progress.close()

    def _passed(self, read: Path, lines: Path, kept: Path, report: CleanReport) -> Iterator[Pair]:
        with (
            open(read, encoding="utf-8", newline="\n") as texts,
            open(lines) as numbers,
            open(kept, encoding="utf-8", errors="replace", newline="\n") as rows,
        ):
            row = next(rows, None)
            for text, line in zip(texts, map(int, numbers), strict=True):
                sides = text.removesuffix("\n").split("\t")
                if text == row:
                    yield sides[0], sides[1], line
                    row = next(rows, None)
                else:
                    shown = " | ".join(side[:SHOWN] for side in sides)
                    report.remove(self.reason, 1, [(line, shown)])
        if row is not None:
            raise mistake("filter wrote another line", reason=self.reason, row=row[:SHOWN])


def command_filters(settings: CleanSettings, pair: str, scratch: Path) -> list[FilterCommand]:
    filters = []
    if similarity := settings.similarity:
        first, second = pair.split("-")
        words = [sys.executable, "-m", "ems", "score", "--model", similarity.model]
        words += ["--threshold", str(similarity.threshold)]
        words += ["--source-language", first, "--target-language", second]
        filters.append(FilterCommand("similarity", tuple(words), Path(), scratch))
    return filters + check_commands(settings, scratch)


def check_commands(settings: CleanSettings, scratch: Path = Path()) -> list[FilterCommand]:
    """Return the filters of `clean.commands`. Raises `EmsError` for a bad file or parameter."""
    filters = []
    for number, chosen in enumerate(settings.commands):
        key, path = f"clean.commands.{number}", Path(chosen.filter)
        description = read_json(path, _Filter)
        if description.type != "bilingual":
            raise mistake("no bilingual filter", key=key, path=path, kind=description.type)
        values = _values(f"{key}.parameters", description.parameters, chosen)
        command = description.command
        if AS_YAML in command:
            values = {AS_YAML: json.dumps(values)}  # JSON is YAML
        variables = [f"{name}={shlex.quote(_as_shell(value))}" for name, value in values.items()]
        words = ("bash", "-o", "pipefail", "-c", "; ".join([*variables, command]))
        filters.append(FilterCommand(path.name, words, path.parent, scratch))
    return filters


def _as_shell(value: Any) -> str:
    """Return a value as OpusCleaner writes it: "1" for true, "" for false."""
    if value is None or isinstance(value, bool):
        return "1" if value else ""
    return str(value)


def _values(key: str, parameters: dict[str, Json], settings: CommandFilter) -> Json:
    """Return the value of each parameter. Raises `EmsError` for an unknown or invalid one."""
    for name, value in settings.parameters.items():
        if name not in parameters:
            words = {"key": key, "filter": settings.filter, "word": name}
            raise mistake("no such parameter", **words, known=parameters)
        _check_value(f"{key}.{name}", value, parameters[name])
    defaults = {name: parameter.get("default") for name, parameter in parameters.items()}
    values = defaults | settings.parameters
    for name, parameter in parameters.items():
        if parameter.get("required") and values[name] is None:
            raise EmsError(f"{key}.{name}: this key is missing; {settings.filter} needs it")
    return values


def _check_value(key: str, value: Any, parameter: Json) -> None:
    types = {"str": (str,), "bool": (bool,), "int": (int,), "float": (int, float)}
    expected = parameter.get("type")
    if type(value) not in types.get(expected, ()):
        raise EmsError(f"{key}: found {value!r}, expected {expected}")
    allowed = parameter.get("allowed_values")
    if allowed and value not in allowed:
        raise EmsError(f"{key}: found {value!r}; allowed values: {', '.join(map(str, allowed))}")
    least, most = parameter.get("min"), parameter.get("max")
    if (least is not None and value < least) or (most is not None and value > most):
        raise EmsError(f"{key}: found {value!r}, expected from {least} to {most}")
