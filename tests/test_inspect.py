"""Laws of `ems inspect`: the text, the pieces and the origin of any pair, and a clear no."""

import json
import random
import subprocess
import sys

import pytest
from cli_made import Cli
from shards_made import LANGUAGES, vocabulary, write_pairs

from ems.shards.index import write_index
from ems.shards.reader import PairStore
from ems.shards.writer import write_shards
from ems.text.subwords import load_vocabulary

SOURCES = {"A+train/v1/de-en": 60, "B/v2/de-en": 50, "B/v2/en-ja": 20, "W+rest/v1/de-en": 9}
MOSES = {"A+train/v1/de-en": {"de-en": 179}, "B/v2/de-en": {"de_at-en": 40, "de_ch-en": 120}}
MINED = {"W+rest/v1/de-en": {"de-en": 26}}


class Results:
    """The results of an experiment, as the workflow lays them out."""

    def __init__(self, folder):
        self.folder, self.ems = folder, Cli(folder)
        self.results, draw = folder / "results" / "made", random.Random(5)
        model = vocabulary(self.results / "vocab" / "own" / "vocabulary.model", 200)
        for name, count in SOURCES.items():
            source = write_pairs(self.results / "text/segmented" / f"{name}.tsv", count, draw)
            write_shards(source, model, self.results / "shards" / "own" / name, pairs=8)
        for name, files in {**MOSES, **MINED}.items():
            report = self.results / "text/clean" / f"{name}.json"
            report.parent.mkdir(parents=True, exist_ok=True)
            mined, (label, version, _) = name in MINED, name.split("/")
            file = "mined/W.{}.tsv.gz" if mined else "moses/{}.txt.zip"
            place = f"{label.split('+')[0]}/{version}/{file}"
            archives = {name: place.format(name) for name in files}
            told = {"files": files, "archives": archives, "threshold": 1.05 if mined else None}
            report.write_text(json.dumps(told))
        self.index = self.results / "shards" / "own" / "index.json"
        folders = [self.results / "shards" / "own" / name for name in SOURCES]
        write_index({"train": folders, "validation": []}, self.index)

    def inspect(self, *flags):
        """What `ems inspect` prints."""
        command = [sys.executable, "-m", "ems.cli", "inspect", *map(str, flags)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def text(self, name, row):
        """Both sides of a pair, as the segmented file has them."""
        lines = (self.results / "text/segmented" / f"{name}.tsv").read_text().splitlines()
        return lines[row].split("\t")[:2]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return Results(tmp_path_factory.mktemp("results"))


@pytest.mark.parametrize(
    ("row", "name", "within", "shard", "origin"),
    [
        # the line of origin of pair i of a file is 3 i + 2
        (0, "A+train/v1/de-en", 0, 0, "line 2 of A/v1/moses/de-en.txt.zip"),
        (59, "A+train/v1/de-en", 59, 7, "line 179 of A/v1/moses/de-en.txt.zip"),
        (60, "B/v2/de-en", 0, 0, "line 2 of B/v2/moses/de_at-en.txt.zip"),
        (72, "B/v2/de-en", 12, 1, "line 38 of B/v2/moses/de_at-en.txt.zip"),
        (73, "B/v2/de-en", 13, 1, "line 1 of B/v2/moses/de_ch-en.txt.zip"),
        (109, "B/v2/de-en", 49, 6, "line 109 of B/v2/moses/de_ch-en.txt.zip"),
        (
            *(112, "W+rest/v1/de-en", 2, 0),
            "line 8 of those with a score of 1.05 or more, of W/v1/mined/W.de-en.tsv.gz",
        ),
    ],
)
def test_a_row_of_a_language_pair_is_shown_with_its_text_and_where_it_comes_from(
    results, row, name, within, shard, origin
):
    told = results.inspect("--index", results.index, "--pair", "de-en", "--row", row)
    corpus, version, pair = name.split("/")
    rows = 8 if within // 8 < SOURCES[name] // 8 else SOURCES[name] % 8
    assert told[0] == (
        f"corpus {corpus} {version}, pair {pair}, shard {shard:05}, row {within % 8} of {rows}"
    )
    assert told[1] == origin
    first, second = results.text(name, within)
    assert told[3] == f"de: {first}"
    assert told[6] == f"en: {second}"
    processor = load_vocabulary(results.results / "vocab" / "own" / "vocabulary.model")
    for text, line in ((first, told[4]), (second, told[7])):
        pieces = processor.encode(text, out_type=str)
        assert line == f"  {len(pieces)} tokens: {' '.join(pieces)}"
    turned = results.inspect("--index", results.index, "--pair", "en-de", "--row", row)
    assert turned == told


def test_a_row_is_the_one_that_training_draws_by_that_number(results):
    store = PairStore(sorted(results.index.parent.glob("*/*/de-en/0*")), LANGUAGES, 99)
    processor = load_vocabulary(results.results / "vocab" / "own" / "vocabulary.model")
    batch = next(store.in_order(119))
    for row in (0, 8, 59, 60, 109):
        at = batch.rows.tolist().index(row)
        start = int(batch.lengths[:at].sum())
        ids = batch.tokens[start : start + int(batch.lengths[at])].tolist()
        told = results.inspect("--index", results.index, "--pair", "de-en", "--row", row)
        assert told[3] == f"de: {processor.decode(ids)}"


def test_a_folder_of_shards_or_one_of_them_is_enough(results):
    folder = results.results / "shards" / "own" / "B/v2/en-ja"
    whole = results.inspect("--shard", folder, "--row", 17)
    assert whole == results.inspect("--shard", folder / "00002", "--row", 1)
    assert whole[0].startswith("corpus B v2, pair en-ja, shard 00002, row 1 of 4")
    assert whole[1].startswith("line 53 of the corpus")  # there is no report of it
    assert whole[3] == f"en: {results.text('B/v2/en-ja', 17)[0]}"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--pair", "de-en", "--row", 119), "--row 119: there are 119 pairs, so a row is one of"),
        (
            ("--pair", "de-fr", "--row", 0),
            "--pair de-fr: no shard holds it; there are de-en, en-ja",
        ),
        (("--row", 0), "give the language pair too"),
        (("--pair", "de-en", "--row", 0, "--shard", "x"), "either --index FILE and --pair, or"),
        (("--pair", "de-en", "--row", 0, "--vocabulary", "v"), "v: not the vocabulary that"),
    ],
)
def test_what_is_not_there_is_one_clear_line(results, flags, told):
    assert told in results.ems.error("inspect", "--index", results.index, *flags)


def test_verify_reads_every_byte(results, tmp_path):
    lines = results.ems("verify", "--index", results.index)
    assert any("20 shards with 139 pairs are whole" in line for line in lines)
    file = results.results / "shards" / "own" / "B/v2/de-en" / "00002" / "en.ids"
    content = file.read_bytes()
    try:
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        told = results.ems.error("verify", "--index", results.index)
        assert "00002/en.ids: its sha256 is not the one in the manifest" in told
    finally:
        file.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "spoilt", "expected"),
    [
        ("en.ids", b"\xff\xff", "row 0: expected token ids below 200, found 65,535; make"),
        ("lines", bytes(8), "row 0: expected a line of the corpus, from 1, found 0; make"),
    ],
)
def test_a_shard_of_wrong_numbers_is_one_clear_line(results, name, spoilt, expected):
    file = results.results / "shards" / "own" / "B/v2/de-en" / "00002" / name
    content = file.read_bytes()
    try:
        file.write_bytes(spoilt + content[len(spoilt) :])
        found = results.ems.error("inspect", "--shard", file.parent, "--row", 0)
        assert f"00002/{name}: {expected}" in found
    finally:
        file.write_bytes(content)
