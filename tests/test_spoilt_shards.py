"""Laws of damaged shards and of `ems inspect`: wrong numbers are one line and never a batch, and
any pair is shown with its text, its pieces and its origin."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from made.cli import Cli
from made.corpora import write_lines
from made.experiments import one_line as message
from made.forked import growth
from made.shards import LANGUAGES, in_order, unpacked, vocabulary, write_pairs, write_shard
from made.shards import write_numbers as write
from made.train import Toy

from ems.shards import shard as checks
from ems.shards.index import write_index
from ems.shards.reader import PairStore
from ems.shards.shard import Shard
from ems.shards.writer import write_shards
from ems.text.subwords import load_vocabulary
from ems.text.tsv import read_tsv

PIECES = 300
THIRD = "row 2 begins at 4: expected its end above that and up to 31"
AGAIN = "make or fetch it again"  # no rule made it: no target is known
LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6]  # tokens of the sentences of both sides


@pytest.fixture
def folder(tmp_path):
    """A shard of de-en with two equal sides."""
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


def test_training_on_a_damaged_shard_names_file_and_row(tmp_path):
    toy = Toy(tmp_path)
    path = toy.shards("validation")[0] / "en.ids"
    spoil(path, {-1: 0xFFFF})
    expected = rf"{path}: row 19: expected token ids below \d+, found 65,535; {AGAIN}"
    assert re.fullmatch(expected, message(toy.train, tmp_path / "run"))


# --- the checks


@pytest.mark.parametrize("name", ["en.ids", "de.ids", "en.offsets", "de.offsets", "lines"])
@pytest.mark.parametrize("change", [-1, -2, 1, None], ids=["-1", "-2", "+1", "absent"])
def test_a_file_of_another_size_is_named_and_not_mapped(folder, name, change):
    opened, content = Shard(folder), (folder / name).read_bytes()
    if change is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content[:change] if change < 0 else content + b"x")
    for read in (lambda: Shard(folder), lambda: (opened.ids, opened.lines)):
        assert re.search(rf"{name}: expected .* bytes by its manifest, found", message(read))


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
def test_wrong_offsets_are_found(folder, monkeypatch, changes, expected, block):
    monkeypatch.setattr(checks, "NUMBERS", block)
    spoil(folder / "en.offsets", changes)
    assert message(store, folder) == f"{folder}/en.offsets: {expected}; {AGAIN}"


@pytest.mark.parametrize("block", [checks.NUMBERS, 1, 4, 7])
@pytest.mark.parametrize(("at", "row"), [(0, 0), (2, 0), (3, 1), (7, 2), (30, 7)])
def test_a_token_id_outside_the_vocabulary_is_named_with_its_row(
    folder, monkeypatch, at, row, block
):
    monkeypatch.setattr(checks, "NUMBERS", block)
    spoil(folder / "de.ids", {at: PIECES - 1})
    store(folder).draw(1, 0, 4, 1.0)  # the largest id
    spoil(folder / "de.ids", {at: PIECES})
    expected = f"row {row}: expected token ids below {PIECES}, found {PIECES}"
    assert message(store, folder) == f"{folder}/de.ids: {expected}; {AGAIN}"


def test_a_store_says_what_it_cannot_draw_from(folder, tmp_path):
    def error(other, *folders):
        return message(PairStore, folders, ["en", other], 100)

    assert error("fr").startswith("expected shards of en, fr, found none in the index")
    wrong = f"{folder}: holds pairs of de-en, the experiment has no de; "
    assert error("fr", folder).startswith(wrong)
    empty = write_shard(tmp_path / "empty/v/de-en/00000", [], [])
    assert error("de", empty) == f"{empty}: expected pairs of sentences, found none; {AGAIN}"
    (empty / "manifest.json").unlink()
    assert error("de", empty).startswith(f"{empty}/manifest.json: no such file")
    other = write_shard(tmp_path / "other/v/de-en/00000", np.arange(31), LENGTHS, sha256="another")
    assert "expected shards of one vocabulary, found 2" in error("de", folder, other)


def test_checking_a_shard_keeps_none_of_it_in_memory(folder, tmp_path):
    lengths = [10] * 500_000  # 28 MB, of which 10 in a file
    large = write_shard(tmp_path / "large/v/de-en/00000", np.arange(5_000_000) % PIECES, lengths)
    assert growth(store, large) - growth(store, folder) < 6e6


# --- ems inspect

SOURCES = {"A+train/v1/de-en": 60, "B/v2/de-en": 50, "B/v2/en-ja": 20, "W+rest/v1/de-en": 9}
ORIGINS = {  # the threshold of scores, and the lines of each file
    "A+train/v1/de-en": (None, {"A/v1/moses/de-en.txt.zip": 179}),
    "B/v2/de-en": (None, {"B/v2/moses/de_at-en.txt.zip": 40, "B/v2/moses/de_ch-en.txt.zip": 120}),
    "W+rest/v1/de-en": (1.05, {"W/v1/mined/W.de-en.tsv.gz": 26}),
}


class Results:
    """The results of an experiment, as the workflow lays them out."""

    def __init__(self, folder):
        self.ems, self.results = Cli(folder), folder / "results" / "made"
        self.shards = self.results / "shards/own"
        self.model = vocabulary(self.results / "vocab/own/vocabulary.model", 200)
        self.index, draw = self.shards / "index.json", random.Random(5)
        for name, count in SOURCES.items():
            source = write_pairs(self.results / "text/segmented" / f"{name}.tsv", count, draw)
            write_shards(source, self.model, self.shards / name, pairs=8)
        for name, (threshold, files) in ORIGINS.items():
            lines = {Path(path).name: count for path, count in files.items()}
            entry = {"files": lines, "archives": dict(zip(lines, files, strict=True))}
            text = json.dumps(entry | {"threshold": threshold})
            write_lines(self.results / "text/clean" / f"{name}.json", [text])
        write_index({"train": [self.shards / name for name in SOURCES]}, self.index)

    def inspect(self, *flags):
        return self.ems.run("inspect", *flags)[0].splitlines()

    def row(self, row, pair="de-en"):
        return self.inspect("--index", self.index, "--pair", pair, "--row", row)

    def text(self, name, row):
        """Both sides of a pair in the segmented file."""
        return list(read_tsv(self.results / "text/segmented" / f"{name}.tsv"))[row][:2]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return Results(tmp_path_factory.mktemp("results"))


MINED_LINE = "line 8 of the lines with a score of 1.05 or more of W/v1/mined/W.de-en.tsv.gz"


@pytest.mark.parametrize(
    ("row", "name", "within", "origin"),
    [
        # the line of origin of pair i of a file is 3 i + 2
        (0, "A+train/v1/de-en", 0, "line 2 of A/v1/moses/de-en.txt.zip"),
        (59, "A+train/v1/de-en", 59, "line 179 of A/v1/moses/de-en.txt.zip"),
        (60, "B/v2/de-en", 0, "line 2 of B/v2/moses/de_at-en.txt.zip"),
        (72, "B/v2/de-en", 12, "line 38 of B/v2/moses/de_at-en.txt.zip"),
        (73, "B/v2/de-en", 13, "line 1 of B/v2/moses/de_ch-en.txt.zip"),
        (112, "W+rest/v1/de-en", 2, MINED_LINE),
    ],
)
def test_a_row_is_shown_with_its_text_pieces_and_origin(results, row, name, within, origin):
    (corpus, version, pair), (shard, place) = name.split("/"), divmod(within, 8)
    rows = min(8, SOURCES[name] - 8 * shard)
    title = f"corpus {corpus} {version}, pair {pair}, shard {shard:05}, row {place} of {rows}"
    processor = load_vocabulary(results.model)
    expected = [title, origin]
    for code, text in zip(("de", "en"), results.text(name, within), strict=True):
        pieces = processor.encode(text, out_type=str)
        expected += ["", f"{code}: {text}", f"  {len(pieces)} tokens: {' '.join(pieces)}"]
    assert results.row(row) == results.row(row, pair="en-de") == expected


def test_a_row_has_the_number_that_training_draws_it_by(results):
    store = PairStore(sorted(results.shards.glob("*/*/de-en/0*")), LANGUAGES, 99)
    processor = load_vocabulary(results.model)
    pairs = unpacked(next(in_order(store, 119)))
    for row in (0, 8, 59, 60, 109):
        (_, ids), _ = pairs[row]
        assert results.row(row)[3] == f"de: {processor.decode(list(ids))}"


def test_a_folder_of_shards_or_a_single_shard_is_inspected_too(results):
    folder = results.shards / "B/v2/en-ja"
    whole = results.inspect("--shard", folder, "--row", 17)
    assert whole == results.inspect("--shard", folder / "00002", "--row", 1)
    assert whole[0].startswith("corpus B v2, pair en-ja, shard 00002, row 1 of 4")
    assert whole[1].startswith("line 53 of the corpus")  # there is no report on it
    assert whole[3] == f"en: {results.text('B/v2/en-ja', 17)[0]}"


@pytest.mark.parametrize(
    ("name", "start", "expected"),
    [
        ("en.ids", b"\xff\xff", "row 0: expected token ids below 200, found 65,535; make"),
        ("en.offsets", b"\0\1", "expected 0 as its first offset, found 256; make"),
        ("lines", bytes(8), "row 0: expected a line of the corpus, from 1, found 0; make"),
    ],
)
def test_inspect_and_verify_report_wrong_numbers(results, name, start, expected):
    lines = results.ems("verify", "--index", results.index)
    assert any("20 shards with 139 pairs are whole" in line for line in lines)
    file = results.shards / "B/v2/de-en/00002" / name
    content = file.read_bytes()
    file.write_bytes(start + content[len(start) :])
    shown = results.ems.error("inspect", "--shard", file.parent, "--row", 0)
    verified = results.ems.error("verify", "--index", results.index)
    file.write_bytes(content)
    assert f"00002/{name}: {expected}" in shown
    assert f"00002/{name}: its SHA-256 is not the one in the manifest" in verified
