"""`ems prepare` and `ems shards` in pieces: killed and run again, they write the same bytes."""

import os
import random
import shutil
import signal
import subprocess
import sys
from itertools import permutations

import psutil
import pytest
from conftest import needs, write_program
from made.cli import Cli, records, wait_for
from made.corpora import moses_of
from made.shards import LANGUAGES, contents, vocabulary, write_pairs
from made.text import segment_alone

from ems.base.errors import EmsError
from ems.shards import writer
from ems.shards.writer import write_shards
from ems.text.evalkeys import write_keys

pytestmark = pytest.mark.slow
PAIRS, PIECE = 1_000, 50
JOB = (("en", "fr"), ("unicode", "unicode"))  # languages and segmenters

# Stands in for Juman++. At the piece with 止 it writes its process id to the trap and sleeps, if a
# test has put the trap there, so that the test can kill a process in the middle.
JUMANPP = """#!{python}
import os, sys, time
text = sys.stdin.buffer.read()
trap = {trap!r}
if "止".encode() in text and os.path.exists(trap):
    with open(trap + ".new", "w") as note:
        note.write(str(os.getpid()))
    os.rename(trap + ".new", trap + ".sprung")
    os.unlink(trap)
    time.sleep(100)
sys.stdout.buffer.write(text)
"""


class Preparing:
    """`ems prepare` of 1,000 pairs of English and Japanese, which are segmented in 20 pieces."""

    def __init__(self, folder):
        self.folder, self.ems = folder, Cli(folder)
        tiny = folder / "configs" / "tiny.yaml"
        tiny.write_text(tiny.read_text().replace("ja: fugashi", "ja: jumanpp"))
        self.trap, self.sprung = folder / "trap", folder / "trap.sprung"
        text = JUMANPP.format(python=sys.executable, trap=str(self.trap))
        write_program(folder / "bin" / "jumanpp", text)
        self.state = folder / "state"
        pairs = [(f"Line {at}.", f"{'止 ' * (at == 615)}{at} 号") for at in range(PAIRS)]
        names = {"corpus": "Demo", "pair": "en-ja"}
        moses_of(folder / "data/opus/Demo/v1/moses/en-ja.txt.zip", pairs, **names)
        write_keys({}, folder / "keys.tsv")

    def job(self, text, *more):
        flags = ("--experiment", "tiny", "--corpus", "Demo", "--version", "v1", "--pair", "en-ja")
        flags += ("--data", "data", "--keys", "keys.tsv", "--state", self.state, "--text", text)
        return ("prepare", *flags, "--out", self.folder / f"{text}.json", *more)

    def segmented(self, text):
        return self.folder / text / "segmented/Demo/v1/en-ja.tsv"

    def trapped(self, *more):
        """Start it, wait until it is in the middle of piece 12, and return the process."""
        self.trap.touch()
        flags = ("--piece-lines", PIECE, "--log", self.folder / "log", *more)
        heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
        run = self.ems.start(*self.job("out", *flags), stderr=subprocess.DEVNULL, **heard)
        wait_for(self.sprung.exists, run)
        return run

    def release(self):
        """End the stand-in that sleeps."""
        pid = int(self.sprung.read_text())
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def preparing(tmp_path, monkeypatch):
    running = Preparing(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    yield running
    if running.sprung.exists():
        running.release()


@pytest.mark.parametrize("workers", [1, 2])
def test_segmentation_killed_inside_a_piece_resumes_after_the_last_complete_one(preparing, workers):
    preparing.ems(*preparing.job("whole"))
    run = preparing.trapped("--workers", workers)
    run.kill()
    run.wait()
    assert not preparing.segmented("out").exists()
    lines = preparing.ems(*preparing.job("out", "--piece-lines", PIECE, "--workers", workers))
    (resumed,) = (line for line in lines if "resumed" in line)
    done = int(resumed.split("resumed, ")[1].split()[0])
    assert 13 - workers <= done < 20
    out = preparing.segmented("out").read_bytes()
    assert out == preparing.segmented("whole").read_bytes()  # in one piece
    assert out.decode().splitlines()[615] == "line 615 .\t止 615 号\t616"
    assert not preparing.state.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent_killed_or_interrupted(preparing, number):
    run = preparing.trapped("--workers", "2")
    family = psutil.Process(run.pid).children()  # what a worker starts looks like it for a moment
    workers = [child for child in family if "spawn_main" in " ".join(child.cmdline())]
    assert len(workers) == 2
    run.send_signal(number)
    assert run.wait(timeout=60) == (130 if number == signal.SIGINT else -signal.SIGKILL)
    interrupted = "error: interrupted" in (preparing.folder / "log").read_text()
    assert interrupted == (number == signal.SIGINT)
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive


@pytest.fixture
def model(tmp_path):
    return vocabulary(tmp_path / "model", 120)


@pytest.mark.parametrize(("line", "columns"), [("a\tb\tc\n", 3), ("c\t2\n", 2)])
def test_a_malformed_line_is_named_by_its_number_in_the_file(tmp_path, model, line, columns):
    rows = [f"a\tb\t{at}\n" for at in range(100)]
    rows[63] = line
    source = tmp_path / "en-fr.tsv"
    source.write_text("".join(rows))
    with pytest.raises(EmsError, match=rf"en-fr\.tsv: line 64 has {columns} columns"):
        write_shards(source, model, tmp_path / "out", pairs=10)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("lines", [100, 50])
def test_a_file_truncated_after_it_was_read_gives_no_output(tmp_path, monkeypatch, model, lines):
    """Its time is older than the output's, so the next Snakemake would not see the change."""
    source, out, write_shard = tmp_path / "en-fr.tsv", tmp_path / "out", writer.write_shard
    source.write_text("".join(f"one two\tun deux\t{at}\n" for at in range(100)))

    def written_and_cut(known, piece, *rest):
        made, size = write_shard(known, piece, *rest), source.stat().st_size
        if piece.end == size:  # the last one
            os.truncate(source, size - 1)
        return made

    monkeypatch.setattr(writer, "write_shard", written_and_cut)
    with pytest.raises(EmsError, match=f"{source}: it changed while it was read"):
        write_shards(source, model, out, pairs=lines)
    assert not out.exists()


def test_nothing_to_segment_gives_an_empty_file(tmp_path):
    (tmp_path / "en-fr.tsv").touch()
    segment_alone(tmp_path / "en-fr.tsv", tmp_path / "out.tsv", *JOB)
    assert (tmp_path / "out.tsv").read_bytes() == b""


@pytest.fixture
def small(tmp_path):
    """A disk of 128 kB, and in its parent folder pairs that need more."""
    folder = tmp_path / "small"
    folder.mkdir()
    rows = (f"{'A b ' * 20}\t{'C d ' * 20}\t{at}\n" for at in range(1_000))
    (tmp_path / "en-fr.tsv").write_text("".join(rows))
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True)
    needs(mounted.returncode == 0, "only root can mount a small tmpfs")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_one_error_and_with_more_space_it_resumes(small):
    with pytest.raises(EmsError, match=r"cannot write .*out.*No space left on device"):
        segment_alone(small.with_name("en-fr.tsv"), small / "out.tsv", *JOB)
    assert list(small.iterdir()) == []
    source, out = small.with_name("en-fr.tsv"), small.with_name("out.tsv")
    job = (source, out, *JOB, 2, 50, small / "state")
    with pytest.raises(EmsError, match=r"cannot write .*state.*No space left on device"):
        segment_alone(*job)
    subprocess.run(["mount", "-o", "remount,size=4m", str(small)], check=True)
    assert list(small.glob("state/*/done/*.json"))
    segment_alone(*job)
    assert list(small.iterdir()) == []
    assert out.read_text() == source.read_text().lower().replace(" \t", "\t")


# --- shards
def killed(*_):
    raise KeyboardInterrupt


def test_encoding_killed_inside_a_shard_writes_that_one_again(tmp_path, monkeypatch):
    source = write_pairs(tmp_path / "de-en.tsv", 300, random.Random(1))
    job = (source, vocabulary(tmp_path / "v.model", 200))
    write_shards(*job, tmp_path / "whole", pairs=75)
    append, sides = writer.EncodedSide.append, iter([False] * 5 + [True] + [False] * 99)
    half = lambda *given: killed() if next(sides) else append(*given)  # noqa: E731
    monkeypatch.setattr(writer.EncodedSide, "append", half)
    with pytest.raises(KeyboardInterrupt):
        write_shards(*job, tmp_path / "out", tmp_path / "state", 1, 75)
    assert records(tmp_path / "state") == 2
    write_shards(*job, tmp_path / "out", tmp_path / "state", 1, 75)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_shards_of_another_vocabulary_are_not_resumed(tmp_path, monkeypatch):
    source = write_pairs(tmp_path / "de-en.tsv", 300, random.Random(1))
    old, new = (vocabulary(tmp_path / f"{size}.model", size) for size in (200, 210))
    job = (tmp_path / "out", tmp_path / "state", 1, 75)
    with monkeypatch.context() as patch:
        patch.setattr("ems.shards.writer.close_folder", killed)
        with pytest.raises(KeyboardInterrupt):
            write_shards(source, old, *job)
    assert records(tmp_path / "state") == 4
    write_shards(source, new, *job)
    write_shards(source, new, tmp_path / "whole", pairs=75)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_killed_job_of_many_pair_files_encodes_only_the_rest(tmp_path):
    ems, draw, stamps = Cli(tmp_path), random.Random(1), tmp_path / "out/.stamps"
    names = map("-".join, permutations(LANGUAGES, 2))
    sources = [write_pairs(tmp_path / f"{name}.tsv", 2_000, draw) for name in names]
    model = vocabulary(tmp_path / "v.model", 200)
    for source in sources:
        write_shards(source, model, tmp_path / "whole" / source.stem)
    flags = ("--vocabulary", model, "--out", tmp_path / "out", "--receipt", tmp_path / "receipt")
    job = ("shards", "--source", *sources, "--state", tmp_path / "state", *flags)
    ems.kill_once(lambda: len(list(stamps.glob("*.json"))) >= 3, *job)
    done = len(list(stamps.glob("*.json")))
    assert not (tmp_path / "receipt").exists()
    assert f"({done} more were done before)" in "".join(ems(*job))
    shutil.rmtree(stamps)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
