"""`ems <stage> ...`: every rule of the workflow is one such call, usable by hand.

Notable choices:
- `--log FILE` writes the same lines to a file and to the terminal: what went in, what came out, why
  the rest did not; an error is its last line;
- `--costs FILE` gets the seconds and the memory of a stage that succeeded;
- `--expect HASH` is what the workflow planned with: a stage whose settings say something else by
  now refuses to run, on this machine and inside a cluster's job alike;
- what a stage writes is checked against what it reads before it does any work (outputs.py);
- of the processes that torchrun starts, only the first writes the log and the costs; the others
  say on the terminal what went wrong.
"""

import argparse
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

from ems import torchrun
from ems.commands import ANY, MAYBE, NAMES, OPTIONAL, STAGES, path
from ems.config import load_site
from ems.config.names import check_name
from ems.costs import measured
from ems.damaged import Damaged
from ems.errors import FAILED, EmsError
from ems.files import unreadable
from ems.orphan import stop_with_snakemake
from ems.outputs import FILE, Place, check_outputs, check_suffix, places_of

log = logging.getLogger("ems")


def main(arguments: list[str] | None = None) -> int:
    """Run one stage; 0, 1 after an error that was printed as one line, or 75 for a training that
    was stopped from outside and saved.
    """
    options = _parser().parse_args(arguments)
    options.arguments = sys.argv[1:] if arguments is None else arguments
    stop_with_snakemake()
    try:
        _set_up_log(None)
        outputs, inputs = list(_outputs(options)), list(_inputs(options))
        if options.log:  # before it is opened: it could be an input, or a table of yesterday
            others = [place for place in outputs if place.kind == "file"]
            check_outputs([Place("--log", options.log)], [*others, *inputs])
            _set_up_log(options.log)
        log.info("ems %s", " ".join(options.arguments))
        _check_text(options.arguments)
        _check_names(options)
        if options.stage.out and options.out:
            check_suffix("--out", options.out, options.stage.out)
        check_outputs(outputs, inputs, options.stage.out or FILE)
        with measured(options.stage.name, None if torchrun.rank() else options.costs):
            options.stage.run(options)
    except EmsError as error:
        log.error("%s%s", "error: " if error.status == FAILED else "", _message(error, options))
        return error.status
    except OSError as error:
        log.error("error: %s", _of_system(error, options))
        return 1
    except KeyboardInterrupt:
        log.error("error: interrupted")
        return 130
    except Exception as error:
        if any(word in f"{error!r}" for word in OUT_OF_MEMORY):
            words = " ".join(str(error).split())[:300] or type(error).__name__
            log.error("error: out of memory: %s; %s", words, LESS_MEMORY)
        else:  # nothing that the user did: say in the log too where it happened
            log.error("error: %r", error, exc_info=True)
        return 1
    return 0


# what Python, PyTorch, CUDA and cuBLAS say; not imported here, where every stage would wait for it
OUT_OF_MEMORY = ("MemoryError", "can't allocate memory", "out of memory", "ALLOC_FAILED")
LESS_MEMORY = "close other programs; a training needs less with a lower train.batch_pairs"
POSITIONAL = {"first": "A", "second": "B"}


def _outputs(options: argparse.Namespace) -> Iterator[Place]:
    """Return the places that a command writes, except its log."""
    if options.stage.out and options.out:
        yield from places_of("--out", options.out, options.stage.out)
    for name, kind in {**options.stage.writes, "costs": "file"}.items():
        path = getattr(options, name, None)
        if path is not None:
            yield Place(f"--{name}", path, kind)


def _inputs(options: argparse.Namespace) -> Iterator[Place]:
    """Return the files and folders that a command reads."""
    others = {"out", "log", "costs", options.stage.around, *options.stage.writes}
    for name, value in vars(options).items():
        if name in others:
            continue
        for item in value if isinstance(value, list) else [value]:
            flag = POSITIONAL.get(name, f"--{name}")
            if name == "evalset" and isinstance(item, tuple):
                yield Place(f"{flag} {item[0]}", Path(item[1]))
            elif isinstance(item, Path) or (name in ("model", "source") and item):
                yield Place(flag, Path(item))


def _message(error: EmsError, options: argparse.Namespace) -> str:
    """An error in words. What mends a damaged file depends on the experiment that reads it."""
    if not isinstance(error, Damaged):
        return str(error)
    try:
        data = load_site(Path("config.yaml"), Path("schemas")).data
    except EmsError:  # not in a project, or its config.yaml is not for these words to judge
        data = "data"
    return error.message(getattr(options, "experiment", None) or "", data)


def _of_system(error: OSError, options: argparse.Namespace) -> str:
    """An error of the system in words."""
    if isinstance(error, FileNotFoundError | IsADirectoryError) and error.filename:
        return _message(unreadable(Path(str(error.filename)), error), options)
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _set_up_log(path: Path | None) -> None:
    rank = torchrun.rank()
    log.setLevel(logging.WARNING if rank else logging.INFO)
    log.handlers.clear()
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if path is not None and not rank:
        path.parent.mkdir(parents=True, exist_ok=True)
        # a name may hold bytes that are not UTF-8
        handlers.append(logging.FileHandler(path, "w", "utf-8", errors="backslashreplace"))
    for handler in handlers:
        who = f"process {rank}: " if rank else ""
        handler.setFormatter(OneLine(f"%(asctime)s {who}%(message)s", "%H:%M:%S"))
        log.addHandler(handler)


class OneLine(logging.Formatter):
    """Shows what cannot be printed (a name may hold it) as escapes: a message is one line."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        shown = (c if c.isprintable() else repr(c)[1:-1] for c in record.message)
        record.message = "".join(shown)
        return super().formatMessage(record)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("ems", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(title="stages", required=True, metavar="stage")
    for stage in STAGES:
        own = commands.add_parser(stage.name, help=stage.text, description=stage.text)
        own.set_defaults(stage=stage, expect="")
        own.add_argument("--log", type=path, help="write the log lines to this file too")
        own.add_argument("--costs", type=path, help="write seconds and memory to this JSON file")
        for flag in stage.flags:
            own.add_argument(f"--{flag}", required=flag not in OPTIONAL)
        for flag, nargs in stage.paths.items():
            needed = nargs not in (ANY, MAYBE)
            own.add_argument(f"--{flag}", type=path, required=needed, nargs=nargs)
        for flag, options in stage.others.items():
            own.add_argument(flag, **options)
        if stage.out:
            wanted = {"required": stage.out.required, "default": stage.out.default}
            own.add_argument("--out", type=path, help=f"the {stage.out.kind} to write", **wanted)
    return parser


def _check_text(arguments: list[str]) -> None:
    """Raise `EmsError` for an argument that is not UTF-8: no file that we write could hold it."""
    for argument in arguments:
        try:
            argument.encode("utf-8")
        except UnicodeEncodeError:
            raise EmsError(f"{argument}: expected UTF-8, found other bytes; rename it") from None


def _check_names(options: argparse.Namespace) -> None:
    """Raise `EmsError` for a flag whose value should be a name, which is a part of paths."""
    for flag in NAMES:
        name = getattr(options, flag, None)
        if name is not None:
            check_name(f"--{flag}", name)


if __name__ == "__main__":
    sys.exit(main())
