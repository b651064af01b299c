"""Laws of shards: they hold the text, and a batch is a function of (seed, step) alone."""

import json
import random
import resource
import shutil
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from conftest import needs
from made import shards as made
from made.corpora import write_lines
from made.experiments import one_line
from made.places import flip
from made.shards import LANGUAGES, in_order, sentences, unpacked

from ems.base.errors import EmsError
from ems.base.files import sha256_file
from ems.commands.cli import main
from ems.shards import writer
from ems.shards.index import read_index, shards_in, write_index
from ems.shards.reader import PairStore
from ems.shards.shard import Shard
from ems.shards.writer import write_each, write_shards
from ems.text.subwords import load_vocabulary
from ems.text.tsv import read_tsv

PAIRS = {"A/v1/de-en": 400, "B/v1/de-en": 150, "A/v1/en-ja": 90, "B/v1/en-ja": 10}
NAMES = {name: name.split("/")[-1].split("-") for name in PAIRS}  # and the two languages
SIZES = [7, 1_000]  # pairs of a shard
LIMIT = 12  # tokens
EMPTY = {3, 50, *range(70, 84)}  # rows of A/v1/de-en without tokens; 70 to 83: shards 10 and 11


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A vocabulary, and four pair files as shards of 7 pairs and of 1,000."""
    folder, draw = tmp_path_factory.mktemp("world"), random.Random(3)
    model = made.vocabulary(folder / "v.model", 200)
    for name, count in PAIRS.items():
        source = made.write_pairs(folder / "text" / f"{name}.tsv", count, draw)
        if name == "A/v1/de-en":
            rows = source.read_text().splitlines()
            for at in EMPTY:  # on either side
                rows[at] = rows[at].replace(rows[at].split("\t")[at % 2], " ", 1)
            write_lines(source, rows)
        for size in SIZES:
            write_shards(source, model, folder / str(size) / name, pairs=size)
    for size in SIZES:
        folders = [folder / str(size) / name for name in reversed(PAIRS)]
        write_index({"train": folders, "validation": []}, folder / str(size) / "index.json")
    return folder


def store(world, size=1_000, limit=LIMIT):
    return PairStore(read_index(world / str(size) / "index.json")["train"], LANGUAGES, limit)


def shard_of(world, name):
    return world / "1000" / name / "00000"


def rows_of(world, name):
    """The rows of a pair file that have tokens on both sides."""
    rows = read_tsv(world / "text" / f"{name}.tsv")
    return [row for row in rows if row[0].strip() and row[1].strip()]


def written(world, folder, *lines):
    """Write a pair file and its shards; the manifest."""
    source = write_lines(folder / "de-en.tsv", lines)
    return write_shards(source, world / "v.model", folder / "de-en")


# --- writing


def test_a_shard_holds_the_pieces_of_its_text_on_both_sides(world):
    processor = load_vocabulary(world / "v.model")
    for name in PAIRS:
        rows = rows_of(world, name)
        for side, code in enumerate(NAMES[name]):
            ids = sentences(shard_of(world, name), code)
            assert ids == processor.encode([row[side] for row in rows])
            assert processor.decode(ids) == [row[side] for row in rows]
        lines = np.fromfile(shard_of(world, name) / "lines", "<i8").tolist()
        assert lines == [int(row[2]) for row in rows]


def test_the_manifest_describes_the_shard(world):
    folder = shard_of(world, "A/v1/de-en")
    manifest = json.loads((folder / "manifest.json").read_text())
    names = ["de.ids", "de.offsets", "en.ids", "en.offsets", "lines"]
    assert sorted(path.name for path in folder.iterdir()) == [*names, "manifest.json"]
    del manifest["lengths"]  # below
    assert manifest == {
        **{"languages": ["de", "en"], "pairs": 384, "dropped": 16},
        "tokens": {code: sum(map(len, sentences(folder, code))) for code in ("de", "en")},
        "vocabulary_sha256": sha256_file(world / "v.model"),
        "sha256": {name: sha256_file(folder / name) for name in names},
    }


def test_the_manifest_of_a_folder_adds_up_its_shards_without_empty_ones(world):
    folder = world / "7" / "A/v1/de-en"
    names = [f"{at:05}" for at in range(58) if at not in (10, 11)]
    assert [shard.name for shard in shards_in(folder)] == names
    assert sorted(path.name for path in folder.iterdir()) == [*names, "manifest.json"]
    small, large = (
        json.loads((world / str(size) / "A/v1/de-en/manifest.json").read_text()) for size in SIZES
    )
    assert small | {"shards": 0} == large | {"shards": 0}
    parts = [Shard(shard).lines.tolist() for shard in shards_in(folder)]
    assert max(map(len, parts)) == 7
    assert [*chain(*parts)] == Shard(shard_of(world, "A/v1/de-en")).lines.tolist()


def test_the_histogram_counts_sentences_by_tens_of_tokens(world, tmp_path):
    counts = (1, 9, 10, 249, 250, 900)
    manifest = written(world, tmp_path, *(f"{'die ' * n}\tthe\t{n}" for n in counts))
    classes = [min(len(ids) // 10, 25) for ids in sentences(tmp_path / "de-en/00000", "de")]
    assert len({*classes}) == 4
    expected = [classes.count(at) for at in range(26)]
    assert manifest["lengths"] == {"de": expected, "en": [6] + [0] * 25}


def test_pair_files_are_encoded_together_and_again_only_those_that_changed(world, tmp_path):
    text, out = tmp_path / "text", tmp_path / "A" / "v1"
    shutil.copytree(world / "text/A/v1", text)
    sources = [text / "de-en.tsv", text / "en-ja.tsv"]

    def written(pieces=1_000, model="v.model"):
        manifests = [out / path.stem / "manifest.json" for path in sources]
        before = [path.is_file() and path.stat().st_mtime_ns for path in manifests]
        sums = write_each(sources, world / model, out, pairs=pieces)
        assert sums == {path.parent.name: sha256_file(path) for path in manifests}
        times = zip(sources, before, manifests, strict=True)
        return [path.stem for path, time, made in times if time != made.stat().st_mtime_ns]

    assert written() == ["de-en", "en-ja"]
    for path in sources:
        expected = made.contents(world / "1000/A/v1" / path.stem)
        assert made.contents(out / path.stem) == expected
    assert written() == []
    (out / "en-ja/00000/lines").unlink()
    assert written() == ["en-ja"]
    write_lines(text / "en-ja.tsv", (text / "en-ja.tsv").read_text().splitlines()[:50])
    assert written() == ["en-ja"]
    assert written(pieces=7) == ["de-en", "en-ja"]
    content = sources[0].read_bytes()
    sources[0].write_text("no columns\n")
    write_lines(text / "en-ja.tsv", (text / "en-ja.tsv").read_text().splitlines()[:40])
    assert f"{sources[0]}: " in one_line(written, 7)
    sources[0].write_bytes(content)
    assert written(pieces=7) == []  # the earlier shards fit the restored text


def test_no_pairs_or_too_many_pieces_are_an_error_and_no_folder(world, tmp_path, monkeypatch):
    message = one_line(written, world, tmp_path, "\tcat\t1")
    assert message.endswith("de-en.tsv: no pair with tokens on both sides")
    monkeypatch.setattr(writer, "MAX_PIECES", 199)
    writer._encoder.cache_clear()
    writer._processor.cache_clear()
    message = one_line(written, world, tmp_path, "katze\tcat\t1")
    assert message.endswith("v.model: 200 pieces; expected at most 199")
    assert [path.name for path in tmp_path.iterdir()] == ["de-en.tsv"]


# --- drawing


def test_a_batch_is_a_function_of_seed_and_step_and_not_of_the_size_of_shards(world):
    small, large = (store(world, size) for size in SIZES)
    assert len(small.shards) > 80
    assert len(large.shards) == len(PAIRS)
    assert small.sizes.tolist() == large.sizes.tolist() == [550 - 16, 100]
    for step in range(50):
        assert unpacked(small.draw(7, step, 64, 0.5)) == unpacked(large.draw(7, step, 64, 0.5))
    assert list(map(unpacked, in_order(small, 32))) == list(map(unpacked, in_order(large, 32)))
    batch = unpacked(large.draw(1, 5, 40, 0.5))
    assert batch == unpacked(store(world).draw(1, 5, 40, 0.5))
    assert batch not in [unpacked(large.draw(*key, 40, 0.5)) for key in ((1, 6), (2, 5), (5, 1))]


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_language_pairs_are_drawn_by_size_to_the_alpha_and_pairs_uniformly(tmp_path, alpha):
    parts = [("A/de-en", 0, 300), ("A/en-ja", 300, 90), ("B/de-en", 390, 150), ("B/en-ja", 540, 10)]
    folders = [  # sentence i of a shard is the token first + i
        made.write_shard(tmp_path / name, first + np.arange(size), [1] * size, name[2:].split("-"))
        for name, first, size in parts
    ]
    data = PairStore(folders, LANGUAGES, LIMIT)
    assert data.sizes.tolist() == [450, 100]
    counts, draws = [0] * 550, 100_000
    for step in range(100):
        for (_, first), (_, second) in unpacked(data.draw(4, step, draws // 100, alpha)):
            assert first == second
            counts[first[0]] += 1
    german = sum(counts[:300]) + sum(counts[390:540])
    share = 450**alpha / (450**alpha + 100**alpha)
    assert abs(german - draws * share) < 5 * (draws * share * (1 - share)) ** 0.5
    for token, count in enumerate(counts):
        is_german = token < 300 or 390 <= token < 540
        expected = draws * (share / 450 if is_german else (1 - share) / 100)
        assert abs(count - expected) < 5 * expected**0.5


def test_the_order_of_the_sides_changes_no_batch(world, tmp_path):
    lines = [f"{b}\t{a}\t{line}" for a, b, line in rows_of(world, "A/v1/de-en")]
    write_shards(write_lines(tmp_path / "en-de.tsv", lines), world / "v.model", tmp_path / "en-de")
    sides, other = (tmp_path / "en-de/00000", shard_of(world, "A/v1/de-en")), "B/v1/de-en"
    turned, plain = (PairStore([own, shard_of(world, other)], LANGUAGES, LIMIT) for own in sides)
    assert list(turned.groups) == list(plain.groups) == [("de", "en")]
    for step in range(10):
        assert unpacked(turned.draw(1, step, 30, 1.0)) == unpacked(plain.draw(1, step, 30, 1.0))


# --- assembling


def pairs_of(world, names, limit):
    """All pairs of de-en and of en-ja, one shard after the other."""
    pairs = {"de-en": [], "en-ja": []}
    for name in names:
        shard, (one, other) = shard_of(world, name), NAMES[name]
        ids = zip(sentences(shard, one), sentences(shard, other), strict=True)
        codes = LANGUAGES.index(one), LANGUAGES.index(other)
        pairs[f"{one}-{other}"] += [
            ((codes[0], tuple(first[:limit])), (codes[1], tuple(second[:limit])))
            for first, second in ids
        ]
    return list(pairs.values())


@pytest.mark.parametrize("limit", [3, 10_000])
@pytest.mark.parametrize("names", [list(PAIRS), list(reversed(PAIRS))])
def test_a_batch_equals_a_plain_loop_over_the_files(world, limit, names):
    draw = random.Random(2)
    edges = [(0, 0), (0, 383), (0, 384), (0, 533), (1, 0), (1, 89), (1, 90), (1, 99)]
    edges += [(0, 149), (0, 150), (1, 9), (1, 10)]
    chosen = [*edges, *((0, draw.randrange(534)) for _ in range(50)), (0, 0)]
    draw.shuffle(chosen)
    groups, within = (np.array(column) for column in zip(*chosen, strict=True))
    data = PairStore([shard_of(world, name) for name in names], LANGUAGES, limit)
    batch, pairs = data.assemble(groups, within), pairs_of(world, names, limit)
    assert batch.pairs == len(chosen)
    assert unpacked(batch) == [pairs[group][at] for group, at in chosen]
    # sentences of similar length are neighbours, in the order of their rows
    places = list(zip(batch.lengths.tolist(), batch.rows.tolist(), strict=True))
    assert places == sorted(places)
    assert sorted(batch.rows.tolist()) == list(range(2 * len(chosen)))


def test_in_order_visits_every_pair_once(world):
    batches = list(in_order(store(world, limit=10_000), 64))
    assert [*chain(*map(unpacked, batches))] == [*chain(*pairs_of(world, PAIRS, 10_000))]
    assert max(batch.pairs for batch in batches) == 64
    assert all(len(set(batch.languages.tolist())) == 2 for batch in batches)


def test_numbers_of_a_billion_pairs_do_not_overflow(world):
    whole = store(world, 7)
    for shard in whole.shards:
        shard.pairs = 1_000_000_007
    whole._count()
    assert int(whole.sizes.sum()) == 1_000_000_007 * len(whole.shards) > 2**36
    groups, within = whole.draw_indices(3, 5, 2_000, 1.0)
    assert within.max() > 2**33
    shards, rows = whole._locate(groups, within)
    assert 0 <= rows.min() <= rows.max() < 1_000_000_007
    before = {shard: at * 1_000_000_007 for at, shard in enumerate(whole._order.tolist())}
    places = np.array([before[shard] for shard in shards.tolist()]) + rows
    assert np.array_equal(places, whole._begins[groups] + within)


# --- the index

SPOIL = {
    "gone": lambda folder: shutil.rmtree(folder / "00003"),
    "another": lambda folder: shutil.copy(folder / "00004" / "manifest.json", folder / "00003"),
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
}


@pytest.mark.parametrize("spoil", SPOIL.values(), ids=SPOIL)
def test_a_folder_whose_list_is_wrong_is_not_indexed(world, tmp_path, spoil):
    folder = shutil.copytree(world / "7" / "B/v1/de-en", tmp_path / "de-en")
    spoil(folder)
    with pytest.raises(EmsError, match=r"not a shard: it has no|not the shard that .* lists"):
        write_index({"train": [folder]}, tmp_path / "index.json")
    assert not (tmp_path / "index.json").exists()


def listed(folder):
    """Three shard folders (an index only looks at their manifests) and the index of them."""
    names = "A/v1/de-en", "A/v1/en-fr", "B/v1/de-en"
    for name in names:
        write_lines(folder / name / "manifest.json", [json.dumps({"corpus": name})])
    train, more, validation = (folder / name for name in names)
    folders = {"train": [train, more], "validation": [validation]}
    write_index(folders, folder / "index.json")
    return folders, folder / "index.json"


def test_an_index_keeps_its_order_when_moved_and_omits_empty_shards(tmp_path):
    """A small file may be empty when its first lines are validation data."""
    folders, path = listed(tmp_path / "here")
    assert read_index(path) == folders
    (folders["train"][1] / "manifest.json").write_text(json.dumps({"pairs": 0, "shards": {}}))
    write_index(folders, path)
    there = shutil.move(tmp_path / "here", tmp_path / "there")
    expected = {"train": [there / "A/v1/de-en"], "validation": [there / "B/v1/de-en"]}
    assert read_index(there / path.name) == expected


@pytest.mark.parametrize("spoil", [flip, Path.unlink])
def test_a_shard_that_differs_from_the_index_is_refused(tmp_path, spoil):
    folders, path = listed(tmp_path)
    spoil(folders["train"][1] / "manifest.json")
    message = f"en-fr: not there, or not the shard that {path} lists"
    assert message in one_line(read_index, path)


def test_an_index_needs_no_validation_and_takes_any_path_of_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed(tmp_path)
    (tmp_path / "odd").mkdir()
    job = ["index", "--training", "A/v1/de-en", "--out"]
    for out in ("one.json", "odd/../two.json", str(tmp_path / "three.json")):
        assert main([*job, out]) == 0
        assert [folder.name for folder in read_index(Path(out))["train"]] == ["de-en"]
    assert main([*job, "odd/index.json"]) == 1  # it lists shards below its own folder


# --- open files


def test_the_limit_of_open_files_is_raised_if_possible(world):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
    try:
        small = store(world, 7)
        assert not any("ids" in vars(shard) for shard in small.shards)  # nothing is open yet
        assert sum(batch.pairs for batch in in_order(small, 50)) == 634
        limits = 200 + 4 * len(small.shards), before[1]  # four files each
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == limits
        with patch("resource.getrlimit", return_value=(64, 128)):
            assert "may open only 128 here (ulimit -Hn)" in one_line(store, world, 7)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_shards_are_mapped_without_read_ahead(world):
    """Few numbers are read at a time of a shard larger than memory; `rr` is the kernel's flag."""
    needs(Path("/proc/self/smaps").is_file(), "the kernel has no smaps")
    small = store(world, 7)
    small.check(200)
    names = {path for shard in small.shards for path in map(str, shard.folder.resolve().iterdir())}
    advised, at = {}, None
    for words in map(str.split, Path("/proc/self/smaps").read_text().splitlines()):
        if not words[0].endswith(":"):
            at = words[-1]
        elif words[0] == "VmFlags:" and at in names:
            advised[at] = "rr" in words
    assert len(advised) >= 4 * len(small.shards)
    assert all(advised.values())
