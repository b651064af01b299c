"""The entry point `ems COMMAND ...`; a rule of the workflow is one such call.

Before a command works, its outputs are checked against its inputs (outputs.py). An error is one
line, the last one on the terminal and in the log. Of the processes that torchrun starts, only the
first writes the log and the costs; the others print only errors.
"""

import errno
import io
import logging
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from ems.base import torchrun
from ems.base.errors import FAILED, Damaged, EmsError, mistake
from ems.base.files import OF_WRITING, SURROGATE, cannot_write, kind_of, standard_output, unreadable
from ems.base.outputs import FlagPath, Writes, check_outputs
from ems.base.processes import look_rarely, measured, stop_with_snakemake
from ems.base.progress import log
from ems.commands import COMMANDS
from ems.commands.common import site_settings
from ems.commands.flags import SHARED, Flag, Mark, parse
from ems.commands.help import printable

# words in errors of Python, the loader, PyTorch, CUDA and cuBLAS, which are too slow to import here
OUT_OF_MEMORY = ("MemoryError", "can't allocate memory", "out of memory", "ALLOC_FAILED")
OUT_OF_MEMORY += ("failed to map segment",)
# How often an OpenMP thread checks whether the others are done before it sleeps. With the default,
# 300,000, another program on the machine makes training up to 17 times slower; with 0, training
# alone is a sixth slower (perf/company.py)
SPINS = "GOMP_SPINCOUNT"
FEW_SPINS = "3000"
TRACEBACK = "EMS_TRACEBACK"  # environment variable: show where an unforeseen error comes from
PACKAGE = Path(__file__).resolve().parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status. 0 for success, 1 for an error, 75 for training
    that was stopped from outside and saved, 130 after Ctrl-C. Exits with 2 for wrong usage, and by
    SIGPIPE, as other programs do, when the reader of standard output has gone (`| head`).
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "encoding", "utf-8") != "utf-8" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    named: dict[str, Any] = {}
    stop_with_snakemake()
    look_rarely()
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault(SPINS, FEW_SPINS)  # read when PyTorch is loaded
    # By default onnxruntime, since 1.29, sends names and hashes of models to Microsoft:
    # https://github.com/microsoft/onnxruntime/pull/27379
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        _set_up_log(None)
        with standard_output():
            name, values = parse(COMMANDS, arguments)
        named = {flag.name: value for flag, value in values.items()}
        _check(values, named["log"], arguments)
        with measured(name, None if torchrun.rank() else named["costs"]):
            own = {flag.name: value for flag, value in values.items() if flag not in SHARED}
            with standard_output():
                COMMANDS[name](**own)
    except SystemExit:
        raise
    except BaseException as error:  # a panic of a library written in Rust is no `Exception`
        return _report(error, named.get("experiment") or "")
    return 0


def _check(values: dict[Flag, Any], log_file: Path | None, arguments: list[str]) -> None:
    """Start the log. Raises `EmsError` for arguments that are refused before any work."""
    written = [(flag, value) for flag, value in values.items() if flag.name != "log"]
    outputs = [place for flag, value in written for place in flag.outputs(value)]
    inputs = [place for flag, value in values.items() for place in flag.inputs(value)]
    if log_file:  # checked before it is opened: it could be an input, or another output
        files = [place for place in outputs if place.kind == "file"]
        check_outputs([FlagPath("--log", log_file)], [*files, *inputs])
        _set_up_log(log_file)
    log.info("ems %s", " ".join(arguments))
    for argument in filter(SURROGATE.search, arguments):  # could be written to none of our files
        raise EmsError(f"{argument}: expected UTF-8, found other bytes; rename it")
    for flag, value in values.items():
        if value is not None and Mark.NAME in flag.notes:
            from ems.base.schema import check_name

            for name in value if isinstance(value, list) else [value]:
                check_name(flag.label, name)
        elif value is not None and (writes := flag.note(Writes)):
            writes.check_suffix(flag.label, value)
    check_outputs(outputs, inputs)
    for flag, value in values.items():
        for place in () if Mark.PLACE in flag.notes else flag.inputs(value):
            if kind_of(place.path, unreadable) == "nothing":
                about = (flag.note(str) or "").partition(" (")[0]
                raise Damaged(place.path, f"no such file ({place.flag}: {about})")
            if not os.access(place.path, os.R_OK):
                raise unreadable(place.path, OSError(errno.EACCES, os.strerror(errno.EACCES)))


def _report(error: BaseException, experiment: str) -> int:
    if isinstance(error, BrokenPipeError):  # the reader of stdout may have gone
        poll = select.poll()
        poll.register(1, 0)
        if any(event & select.POLLERR for _, event in poll.poll(0)):
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.raise_signal(signal.SIGPIPE)
    if isinstance(error, OSError) and error.filename:
        place = str(error.filename)
        if error.errno in OF_WRITING:
            error = cannot_write(place, error)
        elif isinstance(error, FileNotFoundError | IsADirectoryError):
            error = unreadable(Path(place), error)
        else:
            error = EmsError(f"{place}: {error.strerror}; check its permissions and its disk")
    if isinstance(error, EmsError):
        message, prefix = str(error), "error: " if error.status == FAILED else ""
        if isinstance(error, Damaged):  # its remedy depends on the experiment and the site
            try:
                data = site_settings().data
            except Exception:  # no project, a faulty one, or the light package
                data = "data"
            message = error.message(experiment, data)
        log.error("%s%s", prefix, message)
        return error.status
    if isinstance(error, KeyboardInterrupt):
        log.error("error: interrupted")
        return 130
    if isinstance(error, ModuleNotFoundError):  # in the light installation
        log.error("error: %s", mistake("no package", package=error.name))
    elif any(word in f"{error!r}" for word in OUT_OF_MEMORY):
        words = " ".join(str(error).split())[:300] or type(error).__name__
        advice = "close other programs; a training needs less with a lower train.batch_pairs"
        log.error("error: out of memory: %s; %s", words, advice)
    elif isinstance(error, OSError):
        advice = "check the disks of the inputs and outputs"
        if isinstance(error, FileNotFoundError):  # of no file
            advice = "the current folder is gone: change to another"
        log.error("error: %s; %s", error.strerror or error, advice)
    else:
        log.error("error: %s", _fault(error), exc_info=error if TRACEBACK in os.environ else None)
    return FAILED


def _fault(error: BaseException) -> str:
    """Return the message of an unforeseen error, with the innermost line of EMS."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(str(PACKAGE))] or frames
    place = os.path.relpath(own[-1].filename, PACKAGE.parent)
    found = f"a fault of EMS at {place}:{own[-1].lineno} ({type(error).__name__}: {error})"
    return f"{found}; please report it; with {TRACEBACK}=1 before the command it shows more"


def _set_up_log(path: Path | None) -> None:
    rank = torchrun.rank()
    log.setLevel(logging.WARNING if rank else logging.INFO)
    log.handlers.clear()
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if path is not None and not rank:
        path.parent.mkdir(parents=True, exist_ok=True)
        # a name may hold bytes that are not UTF-8
        handlers.append(LogFile(path, "w", "utf-8", errors="backslashreplace"))
    process = f"process {rank}: " if rank else ""
    for handler in handlers:
        handler.setFormatter(OneLine(f"%(asctime)s {process}%(message)s", "%H:%M:%S"))
        log.addHandler(handler)


class LogFile(logging.FileHandler):
    """The log of a job. If it cannot be written (disk full), warns once and goes on."""

    failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        if not self.failed:
            self.failed = True
            why = sys.exc_info()[1]
            log.warning("%s: cannot be written (%s); going on without it", self.baseFilename, why)


class OneLine(logging.Formatter):
    """Escapes unprintable characters, which names may contain."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable(record.message)
        return super().formatMessage(record)


if __name__ == "__main__":
    sys.exit(main())
