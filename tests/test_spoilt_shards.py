"""Laws of shards whose files have the right size and the wrong content: one line, never a batch."""

import json
import multiprocessing
import random
from pathlib import Path

import numpy as np
import pytest
from made.shards import write_numbers as write
from made.shards import write_shard
from made.train import LANGUAGES, MAX_TOKENS, Toy

from ems.base.errors import EmsError
from ems.shards import shard as checks
from ems.shards.reader import PairStore
from ems.shards.shard import Shard

PIECES = 300
THIRD = "row 2 begins at 4: expected its end above that and up to 31"
AGAIN = "make or fetch it again"  # no rule made it: no target is known
LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6]  # tokens of the sentences of both sides


@pytest.fixture
def folder(tmp_path):
    """A shard of de-en; both sides are alike."""
    return write_shard(tmp_path / "c/v/de-en/00000", np.arange(31) % PIECES, LENGTHS)


def spoil(path, changes):
    """Put other numbers at some places of a file."""
    values = np.fromfile(path, "<u2" if path.suffix == ".ids" else "<i8")
    for at, value in changes.items():
        values[at] = value
    write(path, values)


def store(folder):
    opened = PairStore([folder], ["en", "de"], 100)
    opened.check(PIECES)
    return opened


def message(read):
    """The one line that reading ends in."""
    with pytest.raises(EmsError) as caught:
        read()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("training/de.ids", {0: 0xFFFF}, "row 0: expected token ids below "),
        ("training/de.offsets", {0: -9}, "expected 0 as its first offset"),
        ("validation/en.ids", {-1: 0xFFFF}, "row 19: expected token ids below "),
    ],
)
def test_training_on_a_spoilt_shard_names_file_and_row_and_blames_no_setting(
    tmp_path, name, changes, expected
):
    toy, (role, file) = Toy(tmp_path), name.split("/")
    path = toy.shards(role)[0] / file
    spoil(path, changes)
    line = message(lambda: toy.train(tmp_path / "run"))
    assert line.startswith(f"{path}: {expected}")
    assert line.endswith(AGAIN)
    assert "learning_rate" not in line


# --- the checks


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({0: 1}, "expected 0 as its first offset, found 1"),
        ({0: -1}, "expected 0 as its first offset, found -1"),
        *(({3: end}, f"{THIRD}, found {end:,}") for end in (4, -(2**63), 32, 2**63 - 1)),
        ({8: 30}, "expected 31, the number of ids, as its last offset, found 30"),
    ],
)
@pytest.mark.parametrize("block", [checks.NUMBERS, 1, 2, 3])
def test_offsets_begin_at_0_rise_with_each_row_and_end_at_the_number_of_ids(
    folder, monkeypatch, changes, expected, block
):
    monkeypatch.setattr(checks, "NUMBERS", block)
    spoil(folder / "en.offsets", changes)
    line = message(lambda: store(folder).draw(1, 0, 4, 1.0))
    assert f"{folder}/en.offsets: " in line
    assert expected in line


def test_offsets_are_accepted_just_when_a_plain_loop_accepts_them(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "NUMBERS", 3)
    draw, path, refused = random.Random(1), tmp_path / "de.offsets", 0
    for _ in range(300):
        values = np.cumsum([0, *LENGTHS])
        values[draw.randrange(len(values))] += draw.choice([-2, -1, 0, 1, 2])
        steps = zip(values.tolist(), values.tolist()[1:], strict=False)
        right = values[0] == 0 and values[-1] == 31 and all(a < b for a, b in steps)
        write(path, values)
        assert (checks.offsets_fault(path, 31) == "") == right
        refused += not right
    assert 50 < refused < 250


@pytest.mark.parametrize("block", [checks.NUMBERS, 1, 4, 7])
@pytest.mark.parametrize(("at", "row"), [(0, 0), (2, 0), (3, 1), (7, 2), (30, 7)])
def test_a_token_id_that_the_vocabulary_does_not_have_is_named_with_its_row(
    folder, monkeypatch, at, row, block
):
    monkeypatch.setattr(checks, "NUMBERS", block)
    spoil(folder / "de.ids", {at: PIECES - 1})
    store(folder).draw(1, 0, 4, 1.0)  # the last that it has
    spoil(folder / "de.ids", {at: PIECES})
    line = message(lambda: store(folder).draw(1, 0, 4, 1.0))
    expected = f"row {row}: expected token ids below {PIECES}, found {PIECES}"
    assert line == f"{folder}/de.ids: {expected}; {AGAIN}"


@pytest.mark.parametrize("number", [0, -1, -(2**63)])
def test_the_line_that_a_pair_comes_from_is_counted_from_1(folder, number):
    spoil(folder / "lines", {5: number})
    line = message(lambda: Shard(folder).lines)
    assert f"lines: row 5: expected a line of the corpus, from 1, found {number:,}; {AGAIN}" in line


@pytest.mark.parametrize("name", ["de.ids", "en.offsets", "lines"])
def test_a_file_cut_short_after_it_was_opened_is_not_mapped(folder, name):
    shard = Shard(folder)
    (folder / name).write_bytes((folder / name).read_bytes()[:-8])
    line = message(lambda: (shard.ids, shard.lines))
    assert f"{name}: expected " in line
    assert "bytes by its manifest, found " in line


# --- what a store cannot draw from


def test_a_store_says_what_it_cannot_draw_from(folder, tmp_path):
    line = message(lambda: PairStore([], LANGUAGES, MAX_TOKENS))
    assert line.startswith("expected shards of en, de, fr, found none in the index")
    line = message(lambda: PairStore([folder], ["en", "fr"], 100))
    assert line.startswith(f"{folder}: holds pairs of de-en, the experiment has no de; ")
    empty = write_shard(tmp_path / "empty/v/de-en/00000", [], [])
    line = message(lambda: PairStore([empty], ["en", "de"], 100))
    assert line == f"{empty}: expected pairs of sentences, found none; {AGAIN}"
    (empty / "manifest.json").unlink()
    line = message(lambda: PairStore([empty], ["en", "de"], 100))
    assert line.startswith(f"{empty}/manifest.json: no such file")


@pytest.mark.parametrize("pairs", [-1, -(2**63), 7, 9, 2**63, 10**400])
def test_a_number_of_pairs_that_the_files_do_not_have_is_one_line(folder, pairs):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "pairs": pairs}))
    assert str(folder) in message(lambda: PairStore([folder], ["en", "de"], 100))


# --- memory


def peak_memory(folder, out):
    """Touch every file of a shard; write by how much the peak of resident memory grew, in bytes."""
    shard = Shard(folder)
    before = resident_peak()
    assert len(shard.ids) == len(shard.offsets) == 2
    assert len(shard.lines) == shard.pairs
    out.value = resident_peak() - before


def resident_peak():
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024


def test_checking_a_shard_keeps_none_of_it_in_memory(tmp_path):
    lengths = [10] * 250_000  # 16 MB
    folder = write_shard(tmp_path / "c/v/de-en/00000", np.arange(sum(lengths)) % PIECES, lengths)
    context = multiprocessing.get_context("forkserver")
    out = context.Value("q", -1)
    process = context.Process(target=peak_memory, args=(folder, out))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert 0 <= out.value < 6e6
