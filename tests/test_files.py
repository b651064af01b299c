"""Laws of files: a written file is whole or absent, a failure is one line that names it, the same
content is the same bytes; and what is read from JSON is finite and of the declared type.
"""

import errno
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from made import golden
from made.experiments import one_line

from ems.base.errors import EmsError
from ems.base.files import (
    atomic_path,
    cannot_write,
    read_json,
    sha256_file,
    standard_output,
    system_error,
    write_json,
    write_text,
)
from ems.base.records import Below, Bounds, Count, NonBlank, Percent, Record, fitting
from ems.benchmarks.cls.data import _label
from ems.benchmarks.marc.data import read_split
from ems.benchmarks.xnli.data import read_all
from ems.tables.logs import read_losses
from ems.train.checkpoint import _rows


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write_folder(target, name, error=None):
    """Write a folder with one file of its own name, or fail before its end."""
    with atomic_path(target, lambda folder: True) as temporary:
        (temporary / "deep").mkdir(parents=True)
        (temporary / "deep" / name).write_text(name)
        if error:
            raise error


def fail_to_write(target, error):
    with atomic_path(target) as temporary:
        temporary.write_text("new")
        raise error


def test_a_file_appears_under_its_name_only_when_it_is_whole(tmp_path):
    target = tmp_path / "deep" / "x.txt"
    with atomic_path(target) as temporary:
        temporary.write_text("half")
        assert not target.exists()
        assert temporary.parent == target.parent  # a rename across file systems is no rename
    assert target.read_text() == "half"
    assert names(target.parent) == ["x.txt"]


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt("mine"), EmsError("mine")])
def test_after_an_exception_the_old_stands_and_no_temporary_is_left(tmp_path, error):
    write_text(tmp_path / "x.txt", "old")
    for name in ("new.txt", "x.txt"):
        with pytest.raises(type(error), match="mine"):
            fail_to_write(tmp_path / name, error)
    for name in ("older", "old"):  # a folder replaces the old folder as a whole
        write_folder(tmp_path / "shard", name)
    with pytest.raises(type(error), match="mine"):
        write_folder(tmp_path / "shard", "new", error)
    assert names(tmp_path) == ["shard", "x.txt"]
    assert (tmp_path / "x.txt").read_text() == "old"
    assert names(tmp_path / "shard" / "deep") == ["old"]


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text("new"),
        lambda path: shutil.copyfile(__file__, path),  # its error names the input first
        lambda path: np.ones(9000).tofile(path),  # its error has no number
    ],
)
def test_a_full_disk_is_an_error_that_names_the_target_and_leaves_the_old_file(write, tmp_path):
    target = tmp_path / "x.txt"
    write_text(target, "old")
    expected = pytest.raises(EmsError, match=r"cannot write .*x\.txt: .*(No sp|requested).*space")
    with expected, atomic_path(target) as temporary:
        temporary.symlink_to("/dev/full")  # the kernel's own disk-full
        write(temporary)
    assert target.read_text() == "old"
    assert names(tmp_path) == ["x.txt"]


@pytest.mark.parametrize("place", ["file/x.txt", "file/deep/x.txt", "closed/x.txt"])
def test_a_place_where_nothing_can_be_is_an_error_that_names_the_target(tmp_path, place):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "closed").mkdir(mode=0o500)
    target = tmp_path / place
    if place.startswith("closed") and os.geteuid() == 0:
        target = Path("/proc/1/x.txt")  # not even root may write there
    with pytest.raises(EmsError, match=r"cannot write .*x\.txt"):
        write_text(target, "new")
    assert names(tmp_path) == ["closed", "file"]


@pytest.mark.parametrize(
    "read",
    [
        lambda folder: (folder / "input.txt").read_text(),
        lambda folder: Path("/proc/self/mem").read_bytes(),  # an error without the file's name
        lambda folder: gzip.decompress(b"no gzip"),  # without a number
    ],
)
def test_an_input_that_cannot_be_read_is_no_failure_to_write(read, tmp_path):
    for output in (lambda: atomic_path(tmp_path / "x"), standard_output):
        with pytest.raises(OSError, match=r"input\.txt|Input/output|gzipped"), output():
            read(tmp_path)
    assert names(tmp_path) == []


def test_only_a_lack_of_space_asks_for_space(tmp_path):
    for number, name in errno.errorcode.items():
        message = str(cannot_write(tmp_path, OSError(number, name)))
        assert ("free some space" in message) == (name in ("ENOSPC", "EDQUOT"))


def test_an_error_in_the_text_of_a_library_gets_its_number_back(tmp_path):
    text = f'Error while serializing: I/O error (os error 28) at path "{tmp_path}/.tmpPuSwSm"'
    error = system_error(ValueError(text), tmp_path / "x")
    assert (error.errno, error.strerror) == (errno.ENOSPC, "No space left on device")
    assert system_error(ValueError("broken"), tmp_path / "x").strerror == "broken"


def test_the_same_content_is_the_same_json_whatever_the_order_of_its_keys(tmp_path):
    write_json(tmp_path / "a", {"b": [1, 2.5, None], "a": {"ü": "日本", "x": True}})
    write_json(tmp_path / "b", {"a": {"x": True, "ü": "日本"}, "b": [1, 2.5, None]})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_text(encoding="utf-8").endswith("}\n")
    assert "日本" in (tmp_path / "a").read_text(encoding="utf-8")
    assert read_json(tmp_path / "a", Any) == {"a": {"x": True, "ü": "日本"}, "b": [1, 2.5, None]}


def test_text_keeps_its_line_ends_and_a_checksum_is_that_of_the_bytes(tmp_path):
    write_text(tmp_path / "x", "a\nb\r\nc\u2028d")
    assert (tmp_path / "x").read_bytes() == "a\nb\r\nc\u2028d".encode()
    content = bytes(range(256)) * 5000
    (tmp_path / "x").write_bytes(content)
    assert sha256_file(tmp_path / "x") == hashlib.sha256(content).hexdigest()


def test_what_a_killed_writer_left_is_gone_after_the_next_write(tmp_path):
    target = tmp_path / "x[1].txt"  # brackets mean something in a glob
    program = (
        "import os, sys; from pathlib import Path; from ems.base.files import atomic_path\n"
        "with atomic_path(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(target)]).returncode == 9
    assert len(names(tmp_path)) == 1
    (tmp_path / ".x[1].txt.77.part").write_text("a file of the user's")
    write_text(target, "whole")
    assert names(tmp_path) == [".x[1].txt.77.part", "x[1].txt"]


def test_a_write_does_not_look_at_the_files_beside_its_target(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "gone").symlink_to("nowhere")  # like the file of a writer in parallel
    write_text(tmp_path / "x.txt", "new")
    assert names(tmp_path) == ["deep", "x.txt"]


# --- JSON

NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1E+400", "9" * 5000]
PLACES = ["{}", "[1, {}]", '{{"a": {{"b": [{}]}}}}']
REVIEW = {"stars": 5, "review_title": "a", "review_body": "b", "language": "de"}
PAIR = {"language": "de", "gold_label": "neutral", "sentence1": "a", "sentence2": "b", "more": 5}
LOSS = {"part": "train", "step": 1, "pairs": 2, "total": 5}
NO_JSON = [place.format(number) for place in PLACES for number in NUMBERS]
NO_JSON += ['"\\ud800"', '{"\\uDFFF": 1}', "[" * 100_000, '{"a":' * 100_000, "{", ""]


@pytest.mark.parametrize("text", NO_JSON, ids=lambda text: text[:20])
def test_a_number_that_is_not_finite_half_a_character_and_deep_nesting_are_no_json(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    message = one_line(read_json, path, Any)
    assert "x.json: not valid JSON" in message
    assert ("half of a character" in message) == ("\\u" in text)
    assert len(message) < 400


def test_any_other_value_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "x.json"
    values = [1.5, -2e300, 1e-320, 10**400, True, None, "NaN", {"Infinity": 1}]
    path.write_text(json.dumps(values))
    assert read_json(path, Any) == values
    path.write_text('"\\ud83d\\ude00"')  # a whole character in two halves
    assert read_json(path, Any) == "\U0001f600"


READERS = {  # file of JSON lines -> a line, and what reads the file
    "losses.jsonl": (LOSS, lambda folder: read_losses(folder / "losses.jsonl")),
    "dev/dataset_de_dev.json": (REVIEW, lambda folder: list(read_split(folder, "de", "dev"))),
    "XNLI-1.0/xnli.dev.jsonl": (PAIR, lambda folder: list(read_all(folder, "dev"))),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_in_a_line_that_is_not_finite_is_an_error_with_its_line(tmp_path, name, number):
    path, (value, read) = tmp_path / name, READERS[name]
    path.parent.mkdir(exist_ok=True)
    line = json.dumps(value)
    path.write_text(f"{line}\n{line.replace('5', number)}\n")
    message = one_line(read, tmp_path)
    assert f"{path.name}: line 2" in message or f"{path.name}, line 2" in message
    assert len(message) < 400


def test_a_log_of_losses_with_such_a_number_makes_the_checkpoint_a_broken_one(tmp_path):
    for number in NUMBERS:
        (tmp_path / "x").write_text(json.dumps(LOSS).replace("5", number) + "\n")
        with pytest.raises(ValueError):  # noqa: PT011 - upon which the checkpoint before is taken
            _rows(tmp_path / "x")


def test_a_rating_that_is_not_finite_is_of_no_class():
    assert {_label(rating) for rating in ("nan", "inf", "-inf", "1e999", "x")} == {""}
    assert (_label("4.0"), _label("1")) == ("positive", "negative")


# --- types of JSON files


class OfAll(Record):
    name: NonBlank
    count: Count
    percent: Percent
    files: Annotated[dict[Below, NonBlank], Bounds(min_length=1)] = field(default_factory=dict)
    numbers: list[float] = field(default_factory=list)


def misfit(value, of):
    """What differs from a type first; "" if nothing does."""
    try:
        fitting(of, value)
    except ValueError as error:
        return str(error)
    return ""


def test_the_first_thing_that_differs_is_named_with_its_key_and_a_name_stays_in_its_folder():
    """tests/golden/record.txt: JSON of the record above, and what differs from it first."""
    golden.replay("record.txt", lambda line: misfit(json.loads(line), OfAll) or "fits")
    assert len(misfit({"name": ["x" * 10_000], "count": 0, "percent": 1}, OfAll)) < 200


class Index(Record):
    train: NonBlank


def test_a_file_of_another_name_is_not_called_damaged(tmp_path):
    """A model that is given where a list of shards is expected must not be deleted."""
    path = tmp_path / "model.json"
    path.write_text("{}")
    message = one_line(read_json, path, Index, "index.json")
    assert "expected a file index.json: is this the right file" in message
    assert "delete" not in message
    assert "found nothing; make or fetch it again" in one_line(read_json, path, Index, "*.json")


def test_thousands_of_values_are_looked_at_in_a_moment():
    of = dict[str, dict[str, Percent]]
    value = {str(one): {str(other): 50.5 for other in range(62)} for one in range(62)}
    files = {"train": {f"A/v1/de-en/{n:05}": "a" for n in range(5000)}}
    started = time.process_time()
    assert misfit(value, of) == ""
    assert misfit(files, dict[str, dict[Below, NonBlank]]) == ""
    assert time.process_time() - started < 1
