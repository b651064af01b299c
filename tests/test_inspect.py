"""Laws of `ems inspect`: the text, the pieces and the origin of any pair, and a clear no."""

import json
import random
from contextlib import contextmanager

import pytest
from made.cli import Cli
from made.shards import LANGUAGES, in_order, vocabulary, write_pairs

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
        self.ems, self.results = Cli(folder), folder / "results" / "made"
        self.shards, self.model = (
            self.results / "shards/own",
            self.results / "vocab/own/vocabulary.model",
        )
        self.index, draw = self.shards / "index.json", random.Random(5)
        model = vocabulary(self.model, 200)
        for name, count in SOURCES.items():
            source = write_pairs(self.results / "text/segmented" / f"{name}.tsv", count, draw)
            write_shards(source, model, self.shards / name, pairs=8)
        for name, files in {**MOSES, **MINED}.items():
            report = self.results / "text/clean" / f"{name}.json"
            report.parent.mkdir(parents=True, exist_ok=True)
            mined, (label, version, _) = name in MINED, name.split("/")
            file = "mined/W.{}.tsv.gz" if mined else "moses/{}.txt.zip"
            place = f"{label.split('+')[0]}/{version}/{file}"
            archives = {name: place.format(name) for name in files}
            entry = {"files": files, "archives": archives, "threshold": 1.05 if mined else None}
            report.write_text(json.dumps(entry))
        write_index(
            {"train": [self.shards / name for name in SOURCES], "validation": []}, self.index
        )

    def inspect(self, *flags):
        """What `ems inspect` prints."""
        return self.ems.run("inspect", *flags)[0].splitlines()

    def row(self, row, pair="de-en"):
        """What `ems inspect` prints of a row of a language pair."""
        return self.inspect("--index", self.index, "--pair", pair, "--row", row)

    def text(self, name, row):
        """Both sides of a pair, as the segmented file has them."""
        lines = (self.results / "text/segmented" / f"{name}.tsv").read_text().splitlines()
        return lines[row].split("\t")[:2]

    @contextmanager
    def spoilt(self, name, start):
        """A file of a shard with other bytes at its start; yields its path."""
        file = self.shards / "B/v2/de-en/00002" / name
        content = file.read_bytes()
        file.write_bytes(start + content[len(start) :])
        try:
            yield file
        finally:
            file.write_bytes(content)


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
        (109, "B/v2/de-en", 49, "line 109 of B/v2/moses/de_ch-en.txt.zip"),
        (112, "W+rest/v1/de-en", 2, MINED_LINE),
    ],
)
def test_a_row_of_a_language_pair_is_shown_with_its_text_and_where_it_comes_from(
    results, row, name, within, origin
):
    lines = results.row(row)
    (corpus, version, pair), (shard, place) = name.split("/"), divmod(within, 8)
    rows = min(8, SOURCES[name] - 8 * shard)
    assert lines[0] == (
        f"corpus {corpus} {version}, pair {pair}, shard {shard:05}, row {place} of {rows}"
    )
    assert lines[1] == origin
    first, second = results.text(name, within)
    assert (lines[3], lines[6]) == (f"de: {first}", f"en: {second}")
    processor = load_vocabulary(results.model)
    for text, line in ((first, lines[4]), (second, lines[7])):
        pieces = processor.encode(text, out_type=str)
        assert line == f"  {len(pieces)} tokens: {' '.join(pieces)}"
    assert results.row(row, pair="en-de") == lines


def test_a_row_is_the_one_that_training_draws_by_that_number(results):
    store = PairStore(sorted(results.shards.glob("*/*/de-en/0*")), LANGUAGES, 99)
    processor = load_vocabulary(results.model)
    batch = next(in_order(store, 119))
    for row in (0, 8, 59, 60, 109):
        at = batch.rows.tolist().index(row)
        start = int(batch.lengths[:at].sum())
        ids = batch.tokens[start : start + int(batch.lengths[at])].tolist()
        assert results.row(row)[3] == f"de: {processor.decode(ids)}"


def test_a_folder_of_shards_or_one_of_them_is_enough(results):
    folder = results.shards / "B/v2/en-ja"
    whole = results.inspect("--shard", folder, "--row", 17)
    assert whole == results.inspect("--shard", folder / "00002", "--row", 1)
    assert whole[0].startswith("corpus B v2, pair en-ja, shard 00002, row 1 of 4")
    assert whole[1].startswith("line 53 of the corpus")  # there is no report of it
    assert whole[3] == f"en: {results.text('B/v2/en-ja', 17)[0]}"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--pair de-en --row 119", "--row 119: found 119 pairs; give a row from 0 to 118"),
        (
            "--pair de-fr --row 0",
            "--pair de-fr: no shard holds it; the language pairs are de-en, en-ja",
        ),
        ("--row 0", "give the language pair too"),
        ("--pair de-en --row 0 --shard x", "either --index FILE and --pair, or"),
        ("--pair de-en --row 0 --vocabulary v", "v: not the vocabulary that"),
    ],
)
def test_what_is_not_there_is_one_clear_line(results, flags, message):
    assert message in results.ems.error("inspect", "--index", results.index, *flags.split())


@pytest.mark.parametrize(
    ("name", "start", "expected"),
    [
        ("en.ids", b"\xff\xff", "row 0: expected token ids below 200, found 65,535; make"),
        ("lines", bytes(8), "row 0: expected a line of the corpus, from 1, found 0; make"),
    ],
)
def test_a_shard_of_wrong_numbers_is_one_clear_line_and_verify_reads_every_byte(
    results, name, start, expected
):
    lines = results.ems("verify", "--index", results.index)
    assert any("20 shards with 139 pairs are whole" in line for line in lines)
    with results.spoilt(name, start) as file:
        message = results.ems.error("inspect", "--shard", file.parent, "--row", 0)
        verified = results.ems.error("verify", "--index", results.index)
    assert f"00002/{name}: {expected}" in message
    assert f"00002/{name}: its SHA-256 is not the one in the manifest" in verified
