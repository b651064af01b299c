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
replace, save, opened = os.replace, np.save, io.open


def _when_it_reads(more):
    def open_and_more(path, *rest, **names):
        if str(path).endswith(INPUT.name):
            more()
        return opened(path, *rest, **names)

    io.open = builtins.open = open_and_more


def raise_key_error():
    """A reader that trips over its file."""
    _when_it_reads(lambda: {}["absent"])


def speak_python():
    """A message that only a programmer understands."""
    _when_it_reads(lambda: _fail("cannot go on: 'NoneType' object has no attribute 'x'"))


def fail_in_two_lines():
    """A second line after the error."""
    _when_it_reads(lambda: _fail("expected one line,\nfound two"))


def say_nothing():
    """An error that names nothing."""
    _when_it_reads(lambda: _fail("failed"))


def _fail(message):
    print(f"00:00:00 error: {message}", file=sys.stderr)
    os._exit(1)


def end_with_another_status():
    """A status that means nothing."""
    _when_it_reads(lambda: os._exit(77))


def hang():
    """A command that does not end."""
    _when_it_reads(lambda: time.sleep(1000))


def _when_it_writes(more):
    def replace_and_more(source, target, *rest, **names):
        replace(source, target, *rest, **names)
        more(Path(target))

    os.replace = replace_and_more


def write_beside_the_output():
    """A file that was not asked for."""
    _when_it_writes(lambda target: Path("stray.txt").write_text("x"))


def write_above_the_project():
    """A file outside of the project."""
    _when_it_writes(lambda target: Path("../stray.txt").write_text("x"))


def leave_a_part():
    """A temporary file beside the output."""
    _when_it_writes(lambda target: Path(f"{target}.part").write_text("x"))


def delete_the_input():
    """An input that is gone afterwards."""
    _when_it_writes(lambda target: INPUT.unlink())


def touch_the_input():
    """An input that is written again as it was."""
    _when_it_writes(lambda target: INPUT.write_bytes(INPUT.read_bytes()))


def change_the_input():
    """An input of as many bytes as before, and of the same time."""

    def change(target):
        info, content = INPUT.stat(), INPUT.read_bytes()
        INPUT.write_bytes(bytes(reversed(content)))
        os.utime(INPUT, ns=(info.st_atime_ns, info.st_mtime_ns))

    _when_it_writes(change)


def write_and_fail():
    """An output that is another one although the command failed."""

    def fail(target):
        target.write_bytes(b"another")
        _fail("expected to go on, found a planted fault")

    _when_it_writes(fail)


def run_what_a_name_says():
    """What a name in a shell command would do."""
    _when_it_writes(lambda target: os.system("touch pwned"))


def leave_out_a_row():
    """Vectors of all lines but one."""
    np.save = lambda target, array, *rest: save(target, array[1:], *rest)


def write_not_a_number():
    """Vectors that are no numbers."""
    np.save = lambda target, array, *rest: save(target, array * float("nan"), *rest)
