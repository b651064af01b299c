"""Laws of writing: a file is whole or absent, a failure is an error that names it, the same content
is the same bytes."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ems.base.errors import EmsError
from ems.base.files import atomic_path, read_json, sha256_file, write_json, write_text


def any_folder(folder):
    """May be replaced, whatever is in it."""
    return True


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write_folder(target, name, error=None):
    """Write a folder with one file of its own name, or fail before its end."""
    with atomic_path(target, any_folder) as temporary:
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


def test_a_full_disk_is_an_error_that_names_the_target_and_leaves_the_old_file(tmp_path):
    def write():
        with atomic_path(target) as temporary:
            temporary.symlink_to("/dev/full")  # the kernel's own disk-full
            temporary.write_text("new")

    target = tmp_path / "x.txt"
    write_text(target, "old")
    with pytest.raises(EmsError, match=r"cannot write .*x\.txt: No space left"):
        write()
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


def test_a_missing_input_of_the_writer_is_no_failure_to_write(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"input\.txt"), atomic_path(tmp_path / "x"):
        (tmp_path / "input.txt").read_text()
    assert names(tmp_path) == []


def test_the_same_content_is_the_same_json_whatever_the_order_of_its_keys(tmp_path):
    write_json(tmp_path / "a", {"b": [1, 2.5, None], "a": {"ü": "日本", "x": True}})
    write_json(tmp_path / "b", {"a": {"x": True, "ü": "日本"}, "b": [1, 2.5, None]})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_text(encoding="utf-8").endswith("}\n")
    assert "日本" in (tmp_path / "a").read_text(encoding="utf-8")
    assert read_json(tmp_path / "a", Any) == {"a": {"x": True, "ü": "日本"}, "b": [1, 2.5, None]}


def test_json_that_cannot_be_read_is_an_error_that_names_the_file(tmp_path):
    (tmp_path / "file").write_bytes(b"\xff")
    for name, message in (
        ("file", "file: not UTF-8 at byte 0"),
        ("absent", "absent: no such file"),
        ("file/below", "file/below: no such file"),
        (".", "a folder where a file is expected"),
    ):
        with pytest.raises(EmsError, match=message):
            read_json(tmp_path / name, Any)


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
    done = subprocess.run([sys.executable, "-c", program, str(target)])
    assert done.returncode == 9
    assert len(names(tmp_path)) == 1
    write_text(target, "whole")
    assert names(tmp_path) == ["x[1].txt"]


def test_a_write_does_not_look_at_the_files_beside_its_target(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "gone").symlink_to("nowhere")  # like the file of a writer in parallel
    write_text(tmp_path / "x.txt", "new")
    assert names(tmp_path) == ["deep", "x.txt"]
