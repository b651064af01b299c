"""Faults to plant in a command, so that the tests can see the campaign notice each of them.

All of them patch the standard library or NumPy, so that they outlive a rewrite of ems.
"""

import builtins
import io
import os
import sys
import time
from pathlib import Path

import numpy as np

INPUT = Path("text/lines.de")
replace, opened = os.replace, io.open


def _fail(message):
    print(f"00:00:00 error: {message}", file=sys.stderr)
    os._exit(1)


def _change_the_input(target):
    """As many bytes as before, and the same time."""
    info, content = INPUT.stat(), INPUT.read_bytes()
    INPUT.write_bytes(bytes(sorted(content)))
    os.utime(INPUT, ns=(info.st_atime_ns, info.st_mtime_ns))


def _changed(change):
    """Replace the written vectors by changed ones."""

    def rewrite(target):
        if target.suffix == ".npy":
            np.save(target, change(np.load(target)))

    return rewrite


def _write_and_fail(target):
    target.write_bytes(b"another")
    _fail("expected to go on, found a planted fault")


READING = {  # what happens when the input is opened
    "raise a KeyError": lambda: {}["absent"],
    "speak Python": lambda: _fail("cannot go on: 'NoneType' object has no attribute 'x'"),
    "fail in two lines": lambda: _fail("expected one line,\nfound two"),
    "say nothing": lambda: _fail("failed"),
    "end with another status": lambda: os._exit(77),
    "hang": lambda: time.sleep(1000),
}
WRITING = {  # what happens when an output is there
    "write beside the output": lambda target: Path("stray.txt").write_text("x"),
    "write above the project": lambda target: Path("../stray.txt").write_text("x"),
    "leave a temporary file": lambda target: Path(f"{target}.part").write_text("x"),
    "delete the input": lambda target: INPUT.unlink(),
    "touch the input": lambda target: INPUT.write_bytes(INPUT.read_bytes()),
    "change the input": _change_the_input,
    "write and fail": _write_and_fail,
    "run what a name says": lambda target: os.system("touch pwned"),
    "leave out a row": _changed(lambda array: array[1:]),
    "write what is no number": _changed(lambda array: array * float("nan")),
}
FAULTS = [*READING, *WRITING]


def plant(fault):
    """Break something in this process."""

    def open_and_more(path, *rest, **names):
        if str(path).endswith(INPUT.name):
            READING[fault]()
        return opened(path, *rest, **names)

    def replace_and_more(source, target, *rest, **names):
        replace(source, target, *rest, **names)
        WRITING[fault](Path(target))

    if fault in READING:
        io.open = builtins.open = open_and_more
    else:
        os.replace = replace_and_more
