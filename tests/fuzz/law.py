"""The law of every command: it ends in time, with status 0 and right output, or with one line that
says what was expected or found; and it writes nothing but what it was asked to.
"""

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fuzz.edits import Case
from fuzz.forks import HANG, Done
from fuzz.world import Entry, World
from safetensors.numpy import load_file

from ems.base.files import state_of
from ems.commands.help import LONGEST

Listing = dict[str, Entry]
PROJECT = "outer/project"
OUTPUTS = ("out", "receipt", "report", "reports", "log", "costs", "state", "times", "scalars")
GROWING = ("log", "report", "state", "times", "scalars")  # a run that fails may write them
# what was done stays for the next run of a command that fails
KEEPING = {"wikipedia", "shard", "mine-documents"}
# whose finished files stay although the command fails later, as in an upload
ONE_BY_ONE = ("fetch", "fetch-evalset", "shards", "eval", "publish")
COMPANIONS = (".tex", ".csv", ".md", ".png", ".svg", ".pdf", ".json", ".languages")
SHARED = {  # that stages keep for each other, below the project
    **dict.fromkeys(("bench", "eval", "examples"), r"results/[^/]+/embeddings(/|$)"),
    "check": r"\.snakemake(/|$)",  # whose log Snakemake writes when it plans for a profile
    "init": r"configs/own(/|$)",  # the pairs that it holds out
    "prepare": r"(.+/)?(clean|segmented)(/|$)|(text|odd/\w+)$",
    **dict.fromkeys(("fetch", "fetch-evalset"), r"data/\.downloads(/|$)"),
}
TRACE = {
    "ems": re.compile(r"^Traceback|^  File \"|a fault of EMS at", re.MULTILINE),
    "snakemake": re.compile(r"^Traceback", re.MULTILINE),  # whose own errors name rule files
}
PYTHON = re.compile(  # words that no person at the keyboard should have to know
    r"NoneType|object has no attribute|not subscriptable|unhashable|index out of range"
    r"|invalid literal for|codec can't|not iterable|unexpected keyword|positional argument"
    r"|is not JSON serializable|\[Errno|<class |must be str, not|\w+Error\("
)
NOT_FINITE = re.compile(r"\b(NaN|-?Infinity)\b")


class Failure(NamedTuple):
    """A broken law: its cause (the same for all cases that one fix would mend) and details."""

    cause: str
    details: str


def broken_laws(case: Case, done: Done, before: Listing, after: Listing, world: World):
    words = case["words"]
    failures = [*_ending(words, done)]
    if case["kind"] == "models" and "out of memory" in done.err:
        failures.append(Failure(f"believes the sizes of a model: {words[1]}", done.err[-3000:]))
    failures += _writing(words, done.status, before, after, case.get("outputs", []))
    if done.status == 0 and not failures:
        failures += _output(words, after, world, case.get("same", False))
        failures += _numbers(words, world) if case["kind"] == "models" else []
        for path in map(place, case.get("whole", [])):
            if not world.master[path].same(before.get(path)):
                failures.append(Failure("damage not noticed", f"{path}: {before.get(path)}"))
    return failures


def _ending(words: list[str], done: Done) -> Iterator[Failure]:
    stage, text = " ".join(words[:2]), done.out + done.err
    if done.status == HANG:
        yield Failure(f"hang in {stage}", f"no end after {done.seconds:.0f} s\n{text[-3000:]}")
    elif TRACE[words[0]].search(text):
        yield Failure(origin(text), text[-3000:])
    elif done.status not in (0, 1, 2):
        yield Failure(f"status {done.status} of {stage}", text[-3000:])
    if words[0] != "ems" or done.status not in (1, 2) or TRACE["ems"].search(text):
        return
    lines = done.err.removesuffix("\n").split("\n")
    errors = [at for at, line in enumerate(lines) if "error: " in line]
    message = lines[-1].partition("error: ")[2]
    if done.status == 1 and errors != [len(lines) - 1]:
        yield Failure(f"not one error line: {stage}", done.err[-3000:])
    elif done.status == 2 and not lines[-1].startswith("ems"):
        yield Failure(f"not one usage line: {stage}", done.err[-3000:])
    elif PYTHON.search(message):
        yield Failure(f"in Python's words: {PYTHON.search(message)[0]}: {shape(message)}", message)
    elif len(message.split()) < 3 or not message.isprintable() or len(message) > LONGEST + 9:
        yield Failure(f"says too little, too much or is not printable: {stage}", repr(message))


def origin(text: str) -> str:
    """Exception and innermost line of ems of a traceback."""
    places = re.findall(r'File "[^"]*/((?:ems|rules)/[^"]+|[^"]*Snakefile)", line (\d+)', text)
    place = ":".join(places[-1]) if places else "?"
    names = re.findall(r"^([A-Za-z_.]*(?:Error|Exception|Warning|Exit|Interrupt))\b", text, re.M)
    return f"{names[-1].rpartition('.')[2] if names else 'exception'} at {place}"


def shape(message: str) -> str:
    """A message without what differs from case to case."""
    return re.sub(r"'[^']*'|0x\w+|\d+|\S*/\S*", "_", message)[:120]


def named(words: list[str], flags: tuple[str, ...]) -> list[str]:
    values = []
    for at, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag.startswith("--") and flag[2:] in flags:
            values += [value] if equals else words[at + 1 : at + 2]
    return values


def place(value: str) -> str:
    """Where a value of the command line leads, relative to the sandbox, by its spelling."""
    return os.path.normpath(os.path.join(PROJECT, value))


def _writing(words: list[str], status: int, before: Listing, after: Listing, more: list[str]):
    stage = words[1] if words[0] == "ems" and len(words) > 1 else words[0]
    grows = status == 0 or stage in ONE_BY_ONE
    outputs = [*_outputs(words, OUTPUTS if grows else GROWING, before), *map(place, more)]
    if status and stage in KEEPING:
        outputs += [str(state_of(Path(place(out)))) for out in named(words, ("out",))]
    makeable = [place(value) for value in named(words, OUTPUTS)]
    inputs, shared = _inputs(words, before), SHARED.get(stage, "$^")
    if stage == "snakemake":
        shared = r"\.snakemake(/|$)" if "-n" in words else r"(\.snakemake|results|data)(/|$)"
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old == new or (old and old.same(new) and any(within(path, one) for one in makeable)):
            continue
        if old is None and new.kind == "folder" and any(p.startswith(path) for p in makeable):
            continue  # a parent of an output
        if cause := _cause(path, old, new, outputs, inputs, shared):
            yield Failure(f"{cause}: {stage}", f"{path}: was {old}, is {new}")


def _cause(path, old: Entry | None, new: Entry | None, outputs, inputs, shared: str) -> str:
    """What is wrong with a change of a path; '' for nothing."""
    name = os.path.basename(path)
    if re.fullmatch(r"pwned\W*", name):
        return "ran what it was given"
    if name.endswith(".part") and old is None:
        return "leaves .part"
    if path.startswith(PROJECT) and re.match(shared, path[len(PROJECT) + 1 :]):
        return ""
    change = f"makes a {new.kind}" if old is None else f"changes a {old.kind}"
    change = f"removes a {old.kind}" if new is None else change
    if not any(within(path, one) for one in outputs):
        return f"{change} that is no output"
    if old is not None and (path in inputs or old.kind in ("device", "fifo", "socket")):
        return f"{change} that is an input or special"
    if old is not None and old.kind != "folder" and "odd/" in path and path not in outputs:
        return f"{change} inside of an output folder"  # that we never wrote
    return ""


def _outputs(words: list[str], flags: tuple[str, ...], before: Listing) -> list[str]:
    """The outputs that a command names, and what lies beside them by custom."""
    paths = []
    for value in filter(None, named(words, flags)):
        path = place(value)
        if path in before and before[path].kind == "link":  # a log is written through it
            target = os.path.join(os.path.dirname(path), before[path].content)
            paths.append(os.path.normpath(target))
        stem = os.path.splitext(path)[0]
        paths += [path, f"{path}.lock.json", *(stem + suffix for suffix in COMPANIONS)]
    return paths


def _inputs(words: list[str], before: Listing) -> set[str]:
    """The files that a command reads, as its words name them."""
    outputs = set(named(words, OUTPUTS))
    paths = {place(word.partition("=")[2] or word) for word in words[1:] if word not in outputs}
    return {path for path in paths if path in before and before[path].kind != "folder"}


def within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _output(words: list[str], after: Listing, world: World, same: bool) -> Iterator[Failure]:
    """What is wrong with the output of a command that says it went well."""
    if words[1] == "encode":
        yield from _vectors(words, world)
    if words[1] == "train":
        yield from _losses(words, world)
    for value in named(words, ("out",)) if same else ():
        out, known = place(value), place(value.replace("models/stopped", "models/ems"))
        for path, entry in world.master.items():
            now = after.get(out + path.removeprefix(known))
            if entry.kind == "file" and within(path, known) and not (now and now.same(entry)):
                yield Failure(f"wrong output: {words[1]}", f"{path}: {entry}, {now}")


def _vectors(words: list[str], world: World) -> Iterator[Failure]:
    if not (named(words, ("source",)) and named(words, ("out",))):
        return  # from or to a pipe
    source, out = (world.project / named(words, (name,))[-1] for name in ("source", "out"))
    text = source.read_bytes()
    lines = text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
    if out.is_file():
        vectors = np.load(io.BytesIO(out.read_bytes()))
        if len(vectors) != lines or not np.isfinite(vectors).all():
            yield Failure("wrong vectors: encode", f"{vectors.shape} for {lines} lines")


def _numbers(words: list[str], world: World) -> Iterator[Failure]:
    """What is written with a model is finite, also in a text."""
    for out in (world.project / value for value in named(words, ("out",))):
        if out.suffix != ".npy" and re.search(r"\b(nan|inf|infinity)\b", out.read_text(), re.I):
            yield Failure(f"numbers that are not finite: {words[1]}", out.read_text()[:3000])


def _losses(words: list[str], world: World) -> Iterator[Failure]:
    folder = world.project / named(words, ("out",))[-1]
    if NOT_FINITE.search((folder / "losses.jsonl").read_text(encoding="utf-8")):
        yield Failure("losses that are not finite: train", str(folder))
    for file in folder.glob("*.safetensors"):
        if not all(np.isfinite(weights).all() for weights in load_file(file).values()):
            yield Failure("weights that are not finite: train", str(file))
