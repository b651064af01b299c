"""Laws of what a command may write: it replaces only what is of its own kind, never its input, and
says so before any work is done."""

import os
import shutil
import stat
import subprocess
import sys
from functools import partial
from itertools import chain
from pathlib import Path
from typing import get_args, get_origin
from unittest.mock import Mock

import pytest
from made import golden
from made.cli import Cli

from ems.base.errors import EmsError
from ems.base.files import atomic_path, check_target, write_text
from ems.base.outputs import Writes
from ems.commands import COMMANDS
from ems.commands.cli import main
from ems.commands.flags import REQUIRED, Choices, Mark, flags_of
from ems.corpora.demo.mirror import _is_mirror
from ems.shards.writer import write_shards


def is_path(flag):
    return Path in (flag.type, *get_args(flag.type)) and get_origin(flag.type) is not dict


def reads(flag):
    """True for a path flag of a file or folder that is not written."""
    return is_path(flag) and not flag.note(Writes) and Mark.AROUND not in flag.notes


def arguments_of(name, source, /, **given):
    """A command line with every path flag: `source` for what is read, new names for outputs."""
    words = [name]
    places = {"experiment": "tiny", "pair": "de-en", "bench": "tatoeba", "row": 1} | given
    for flag in flags_of(COMMANDS[name]):
        if flag.name in places:
            word = places[flag.name]
        elif flag.note(Writes):
            word = f"new-{flag.name}"
        elif reads(flag):
            word = source
        elif flag.default is not REQUIRED:
            continue
        elif get_origin(flag.type) is dict:
            word = "tatoeba=d"
        else:
            choices = flag.note(Choices)
            word = next(iter(choices() if choices else get_args(flag.type)), "x")
        words += [word] if Mark.POSITIONAL in flag.notes else [flag.label, word]
    shared = [(f"--{name}", given[name]) for name in ("log", "costs") if name in given]
    return [*words, *chain(*shared)]


KEPT = "keep me"
ENCODE = "encode --model m --language en --source de-en.tsv --out"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the project's settings and two folders of the user's, as working directory."""
    Cli(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "thesis.txt").write_text(KEPT)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "manifest.json").write_text('{"name": "my web page"}')  # a common name
    (tmp_path / "de-en.tsv").write_text("ein Haus\ta house\t1\nein Hund\ta dog\t2\n")
    (tmp_path / "link.tsv").symlink_to("de-en.tsv")
    (tmp_path / "hard.tsv").hardlink_to(tmp_path / "de-en.tsv")
    (tmp_path / "f").symlink_to(tmp_path)
    (tmp_path / "kept.languages").mkdir()
    (tmp_path / "e" / "thesis").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe")
    os.mknod(tmp_path / "socket", stat.S_IFSOCK)
    (tmp_path / "device").symlink_to("/dev/null")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(folder):
    modes = {path: stat.S_IFMT(path.lstat().st_mode) for path in folder.rglob("*")}
    return {p: (mode, p.read_bytes() if stat.S_ISREG(mode) else None) for p, mode in modes.items()}


def refused(capfd, place, *arguments):
    """The one line of a command that must fail and must leave everything as it was."""
    capfd.readouterr()
    before = tree(place)
    status = main(list(map(str, arguments)))
    lines = capfd.readouterr().err.splitlines()
    assert status == 1, lines
    assert "Traceback" not in "".join(lines)
    assert tree(place) == before
    (line,) = (line for line in lines if "error: " in line)
    return line.partition("error: ")[2]


FLAGS = {name: flags_of(command) for name, command in COMMANDS.items()}
OUTS = {name: flag for name, flags in FLAGS.items() for flag in flags if flag.name == "out"}
READERS = [name for name in OUTS if any(map(reads, FLAGS[name]))]
FILES = [name for name, flag in OUTS.items() if flag.note(Writes).kind == "file"]


def test_a_wrong_output_is_one_line_before_any_work(place, capfd):
    """tests/golden/outputs.txt: a command line and its error. The commands never run."""
    (place / "m/C/v1/moses").mkdir(parents=True)
    (place / "m/C/v1/moses/de-en.txt.zip").write_text(KEPT)
    golden.replay("outputs.txt", lambda job: refused(capfd, place, *job.split()))
    # the temporary name in the same folder is longer than the 255 bytes of a file system
    line = refused(capfd, place, *ENCODE.split(), "x.npy", "--costs", "c" * 250)
    assert "File name too long; choose a shorter name" in line


WRONG_INPUTS = {  # name: the words of the error after it
    "gone": ": no such file (",
    "broken": ": no such file (",
    "thesis.txt/x": ": no such file",
    "loop": ": cannot be read (Too many levels of symbolic links)",
    "n" * 300: ": cannot be read (File name too long)",
    "a\0b": ": cannot be read (embedded null byte)",
    "pipe": ": expected a file or a folder, found a pipe",
}


@pytest.mark.parametrize("command", [name for name in COMMANDS if any(map(reads, FLAGS[name]))])
def test_an_input_that_cannot_be_read_is_named_before_any_work(place, capfd, command):
    for name, target in {"broken": "nowhere", "loop": "loop", "thesis.txt": "d/thesis.txt"}.items():
        (place / name).symlink_to(target)
    out = f"new{OUTS[command].note(Writes).suffixes[0]}" if command in OUTS else ""
    for flag in filter(reads, FLAGS[command]):
        for name, words in WRONG_INPUTS.items():
            given = {flag.name: name, **({"out": out} if out else {})}
            line = refused(capfd, place, *arguments_of(command, "de-en.tsv", **given))
            assert f"{name}{words}".replace("\0", "\\x00") in line
            assert flag.label in line or "no such file (" not in words


# --- the kind of what is there


@pytest.mark.parametrize("command", FILES)
def test_a_folder_given_as_the_name_of_a_file_is_refused_and_keeps_its_files(place, capfd, command):
    suffix = OUTS[command].note(Writes).suffixes[0]
    target = (place / "d").rename(place / f"d{suffix}") if suffix else place / "d"
    line = refused(capfd, place, *arguments_of(command, "de-en.tsv", out=target.name))
    assert f"--out {target.name}: expected the name of a file, found a folder" in line


def test_no_writer_replaces_a_device_whoever_calls_it():
    with pytest.raises(EmsError, match="/dev/null: expected the name of a file, found a device"):
        write_text("/dev/null", "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# --- folders


def test_shards_replace_those_of_an_earlier_run_and_no_folder_with_other_files(place, capfd, toy):
    shutil.copy(toy.vocabulary, place / "vocabulary.model")
    job = ["shards", "--source", "de-en.tsv", "--vocabulary", "vocabulary.model", "--out"]
    assert main([*job, "s"]) == 0
    before = tree(place / "s")
    assert main([*job, "s"]) == 0
    assert tree(place / "s") == before
    (place / "s" / "notes.txt").write_text(KEPT)
    assert "--out s: expected a new folder or one that" in refused(capfd, place, *job, "s")


def test_a_kill_between_two_renames_leaves_no_part_of_a_folder_under_its_name(
    place, toy, monkeypatch
):
    """The old shards are renamed before they are deleted."""
    write = partial(write_shards, place / "de-en.tsv", toy.vocabulary, place / "s")
    write()
    monkeypatch.setattr("ems.base.files.shutil.rmtree", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write()
    monkeypatch.undo()
    assert (place / "s" / "manifest.json").exists()
    write()
    write()
    assert not list(place.glob(".s.*"))


def test_a_mirror_that_was_killed_while_it_wrote_its_mark_may_be_replaced(tmp_path):
    (tmp_path / "..ems-demo.999.part").write_text("writt")
    check_target(tmp_path, _is_mirror)


WRITTEN = [(name, flag) for name in READERS for flag in ("out", "log", "costs")]


@pytest.mark.parametrize(("command", "flag"), WRITTEN)
def test_no_stage_writes_over_what_it_reads(place, capfd, command, flag):
    writes = OUTS[command].note(Writes)
    suffix = writes.suffixes[0] or ".tsv"
    name = writes.names[0] if writes.names else f"de-en{suffix}"
    (place / "de-en.tsv").rename(place / name)
    given = {"out": f"new{suffix}", flag: name}
    if writes.kind != "file" and flag == "out":
        given["out"] = "."  # a folder into which files are put: the source is one of them
    line = refused(capfd, place, *arguments_of(command, name, **given))
    assert f"--{flag} " in line


def test_a_folder_that_vanishes_is_not_a_lack_of_space(tmp_path):
    expected = pytest.raises(EmsError, match=r"x: No such file or directory; it vanished")
    with expected, atomic_path(tmp_path / "deep" / "x") as temporary:
        temporary.write_text("x")
        shutil.rmtree(tmp_path / "deep")


def test_of_two_writers_of_one_file_the_later_wins_and_the_other_says_so(tmp_path):
    user = tmp_path / ".x.notes.part"
    user.write_text(KEPT)

    expected = pytest.raises(EmsError, match="x: No such file or directory; it vanished while")
    with expected, atomic_path(tmp_path / "x") as temporary:
        temporary.write_text("first")
        other = temporary.with_name(".x.999999999.ems.part")  # the name for another process
        temporary.rename(other)
        write_text(tmp_path / "x", "second")
        assert not other.exists()
    assert (tmp_path / "x").read_text() == "second"
    assert sorted(path.name for path in tmp_path.iterdir()) == [user.name, "x"]


@pytest.mark.parametrize(
    "name", ["ü ber\n'$(x)\u202e".encode(), b"\xff\xfe"], ids=["not printable", "not UTF-8"]
)
def test_a_name_of_any_bytes_is_one_line_in_the_log_too(tmp_path, name):
    """In a process of its own: the test runner cannot send such names from one to another."""
    words = ["--model", "d", "--language", "en", "--source", name, "--out", "x.npy", "--log", "log"]
    command = [sys.executable, "-m", "ems", "encode", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert done.returncode == 1
    lines = done.stderr.decode("utf-8").splitlines()
    assert "no such file" in lines[-1] or "expected UTF-8, found other bytes" in lines[-1]
    assert sum("error: " in line for line in lines) == 1
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines() == lines
