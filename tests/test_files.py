"""Laws of writing: a file is whole or absent, a failure is told, the same content is the same
bytes."""

import hashlib
import os
import subprocess
import sys

import pytest

from ems.errors import EmsError
from ems.files import atomic_path, read_json, sha256_file, write_json, write_text


def any_folder(folder):
    """May be replaced, whatever is in it."""
    return True


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fail_while_writing(target, error, folder=False):
    """Write half of `target`, then raise `error`."""
    with atomic_path(target, any_folder if folder else None) as temporary:
        if folder:
            temporary.mkdir()
            (temporary / "b").write_text("new")
        else:
            temporary.write_text("new")
        raise error


def write_to_a_full_disk(target):
    with atomic_path(target) as temporary:
        temporary.symlink_to("/dev/full")  # the kernel's own disk-full
        temporary.write_text("new")


def test_a_file_appears_under_its_name_only_when_it_is_whole(tmp_path):
    target = tmp_path / "deep" / "x.txt"
    with atomic_path(target) as temporary:
        temporary.write_text("half")
        assert not target.exists()
        assert temporary.parent == target.parent  # a rename across file systems is no rename
    assert target.read_text() == "half"
    assert names(target.parent) == ["x.txt"]


def test_after_an_exception_the_old_file_stands_and_no_temporary_is_left(tmp_path):
    target = tmp_path / "x.txt"
    write_text(target, "old")
    with pytest.raises(KeyError, match="mine"):
        fail_while_writing(target, KeyError("mine"))
    assert target.read_text() == "old"
    assert names(tmp_path) == ["x.txt"]


def test_after_an_interrupt_nothing_new_is_there(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fail_while_writing(tmp_path / "x.txt", KeyboardInterrupt())
    assert names(tmp_path) == []


def test_a_folder_replaces_the_old_folder_as_a_whole(tmp_path):
    target = tmp_path / "shard"
    for content in ("first", "second"):
        with atomic_path(target, any_folder) as temporary:
            (temporary / "deep").mkdir(parents=True)
            (temporary / "deep" / content).write_text(content)
    assert names(target / "deep") == ["second"]
    assert names(tmp_path) == ["shard"]


def test_after_an_exception_the_old_folder_stands_and_no_temporary_is_left(tmp_path):
    target = tmp_path / "shard"
    with atomic_path(target, any_folder) as temporary:
        temporary.mkdir()
        (temporary / "a").write_text("old")
    with pytest.raises(EmsError, match="mine"):
        fail_while_writing(target, EmsError("mine"), folder=True)
    assert names(target) == ["a"]
    assert (target / "a").read_text() == "old"
    assert names(tmp_path) == ["shard"]


def test_a_full_disk_is_an_error_that_names_the_target_and_leaves_the_old_file(tmp_path):
    target = tmp_path / "x.txt"
    write_text(target, "old")
    with pytest.raises(EmsError, match=r"cannot write .*x\.txt: No space left"):
        write_to_a_full_disk(target)
    assert target.read_text() == "old"
    assert names(tmp_path) == ["x.txt"]


@pytest.mark.parametrize("inside", [False, True], ids=["the parent is a file", "and deeper"])
def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_target(tmp_path, inside):
    (tmp_path / "file").write_text("in the way")
    target = tmp_path / "file" / ("deep/x.txt" if inside else "x.txt")
    with pytest.raises(EmsError, match=r"cannot write .*x\.txt"):
        write_text(target, "new")
    assert names(tmp_path) == ["file"]


def test_a_place_without_permission_is_an_error_that_names_the_target(tmp_path):
    target = tmp_path / "closed" / "x.txt"
    if os.geteuid() == 0:
        target = type(target)("/proc/1/x.txt")  # not even root may write there
    else:
        target.parent.mkdir(mode=0o500)
    with pytest.raises(EmsError, match=r"cannot write .*x\.txt"):
        write_text(target, "new")
    assert not target.exists()


def test_a_missing_input_of_the_writer_is_not_told_as_a_failure_to_write(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"input\.txt"), atomic_path(tmp_path / "x"):
        (tmp_path / "input.txt").read_text()
    assert names(tmp_path) == []


def test_the_same_content_is_the_same_json_whatever_the_order_of_its_keys(tmp_path):
    write_json(tmp_path / "a", {"b": [1, 2.5, None], "a": {"ü": "日本", "x": True}})
    write_json(tmp_path / "b", {"a": {"x": True, "ü": "日本"}, "b": [1, 2.5, None]})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_text(encoding="utf-8").endswith("}\n")
    assert "日本" in (tmp_path / "a").read_text(encoding="utf-8")
    assert read_json(tmp_path / "a", {}) == {"a": {"x": True, "ü": "日本"}, "b": [1, 2.5, None]}


def test_text_keeps_its_line_ends(tmp_path):
    write_text(tmp_path / "x", "a\nb\r\nc\u2028d")
    assert (tmp_path / "x").read_bytes() == "a\nb\r\nc\u2028d".encode()


BROKEN = {
    "half": b"{",
    "not UTF-8": b"\xff",
    "empty": b"",
    "nested without end": b"[" * 100_000,
    "a number of 5,000 digits": b"1" * 5000,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_broken_json_is_an_error_that_names_the_file(tmp_path, content):
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(EmsError, match=r"manifest\.json: not (valid JSON|UTF-8)"):
        read_json(path, {})


def test_absent_json_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(EmsError, match=r"manifest\.json: no such file"):
        read_json(tmp_path / "manifest.json", {})


def test_a_folder_in_place_of_json_is_an_error_that_says_so(tmp_path):
    with pytest.raises(EmsError, match="a folder where a file is expected"):
        read_json(tmp_path, {})
    (tmp_path / "file").touch()
    with pytest.raises(EmsError, match=r"x\.json: no such file"):
        read_json(tmp_path / "file" / "x.json", {})


def test_the_checksum_of_a_file_is_that_of_its_bytes(tmp_path):
    content = bytes(range(256)) * 5000
    (tmp_path / "x").write_bytes(content)
    assert sha256_file(tmp_path / "x") == hashlib.sha256(content).hexdigest()


def test_what_a_killed_writer_left_is_gone_after_the_next_write(tmp_path):
    target = tmp_path / "x[1].txt"  # brackets mean something in a glob
    program = (
        "import os, sys; from pathlib import Path; from ems.files import atomic_path\n"
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
