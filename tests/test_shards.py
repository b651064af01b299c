"""Laws of the shards: they decode to the text, and a batch is a pure function of (seed, step)."""

import hashlib
import json
import random

import numpy as np
import pytest
from made.shards import (
    LANGUAGES,
    in_order,
    sentences,
    unpacked,
    vocabulary,
    write_pairs,
    write_shard,
)

from ems.base.errors import EmsError
from ems.shards import writer
from ems.shards.reader import PairStore
from ems.shards.shard import Shard
from ems.shards.writer import write_shards
from ems.text import subwords
from ems.text.subwords import load_vocabulary

PAIRS = {"A/de-en": 400, "B/de-en": 150, "A/en-ja": 90, "B/en-ja": 10}
LIMIT = 12  # tokens


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A vocabulary and four pair files of two language pairs, as shards."""
    folder, draw = tmp_path_factory.mktemp("world"), random.Random(1)
    vocabulary(folder / "v.model", size=200)
    for name, count in PAIRS.items():
        source = write_pairs(folder / "text" / f"{name}.tsv", count, draw)
        write_shards(source, folder / "v.model", folder / "shards" / name)
    return folder


def written(world, folder):
    """Write the shards of a pair file; the manifest."""
    return write_shards(folder / "de-en.tsv", world / "v.model", folder / "de-en")


def shard_of(world, name):
    """The only shard of a pair file of `world`."""
    return world / "shards" / name / "00000"


def store(world, *names, limit=LIMIT):
    return PairStore([shard_of(world, name) for name in names or PAIRS], LANGUAGES, limit)


# --- writing


def test_a_shard_decodes_to_the_pieces_of_its_text_with_both_sides_aligned(world):
    processor = load_vocabulary(world / "v.model")
    for name, count in PAIRS.items():
        lines = (world / "text" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
        assert len(lines) == count
        for side, code in enumerate(name[2:].split("-")):
            texts = [line.split("\t")[side] for line in lines]
            ids = sentences(shard_of(world, name), code)
            assert ids == processor.encode(texts)
            assert processor.decode(ids) == texts


def test_the_manifest_says_what_the_shard_holds(world):
    folder = shard_of(world, "A/de-en")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["languages"] == ["de", "en"]
    assert (manifest["pairs"], manifest["dropped"]) == (400, 0)
    for code in ("de", "en"):
        assert manifest["tokens"][code] == sum(map(len, sentences(folder, code)))
    names = ["de.ids", "de.offsets", "en.ids", "en.offsets", "lines"]
    assert sorted(path.name for path in folder.iterdir()) == [*names, "manifest.json"]
    for name in names:
        content = (folder / name).read_bytes()
        assert manifest["sha256"][name] == hashlib.sha256(content).hexdigest()
    content = (world / "v.model").read_bytes()
    assert manifest["vocabulary_sha256"] == hashlib.sha256(content).hexdigest()
    assert np.fromfile(folder / "lines", "<i8").tolist() == [3 * at + 2 for at in range(400)]


def test_the_histogram_counts_every_sentence_in_classes_of_ten_tokens(world, tmp_path):
    rows = [f"{'die ' * count}\tthe\t{count}\n" for count in (1, 9, 10, 249, 250, 900)]
    (tmp_path / "de-en.tsv").write_text("".join(rows))
    manifest = written(world, tmp_path)
    lengths = [len(ids) for ids in sentences(tmp_path / "de-en" / "00000", "de")]
    assert max(lengths) >= 900
    classes = [min(length // 10, 25) for length in lengths]
    expected = [classes.count(at) for at in range(26)]
    assert manifest["lengths"] == {"de": expected, "en": [6] + [0] * 25}


def test_a_shard_larger_than_a_batch_keeps_every_pair_but_those_without_tokens(world, tmp_path):
    rows = [f"katze {'die ' * (at % 5)}\tcat {'the ' * (at % 7)}\t{at}\n" for at in range(4_100)]
    spoilt = {7: "\tcat\t2\n", 8: "katze\t \t3\n"}
    text = "".join(spoilt.get(at, row) for at, row in enumerate(rows))
    (tmp_path / "de-en.tsv").write_text(text)
    manifest = written(world, tmp_path)
    assert (manifest["pairs"], manifest["dropped"]) == (4_098, 2)
    processor = load_vocabulary(world / "v.model")
    for side, code in enumerate(("de", "en")):
        decoded = [processor.decode(ids) for ids in sentences(tmp_path / "de-en" / "00000", code)]
        kept = [row for at, row in enumerate(rows) if at not in spoilt]
        assert decoded == [" ".join(row.split("\t")[side].split()) for row in kept]


NASTY = [
    "",
    " ",
    "  the  cat ",
    "the\u00a0cat \u00a0 \u3000today\u3000",
    "the \u0301 cat \u0308a",
    "\u2581 the\u2581cat \u2581today the\u2581",
    "\u200bthe \ufeff cat\u200d \u00ad",
    "\u00a8 \u0385 ﬁ ½ ㍿ ㌔ ｶﾞ ①",
    "𠮷𠮷 𠮷 x𠮷𠮷y ☃☃ 😀 < > <mask> <2en> <pad>",
    "\x00 \x01a \x7f",
    "x" * 5_000,
    "猫は 今日も小さな鳥を",
    "the the the cat cat",
]


@pytest.mark.parametrize("kept", [subwords.KEPT, 3])
def test_words_one_by_one_give_the_ids_of_the_whole_line(world, monkeypatch, kept):
    monkeypatch.setattr(subwords, "KEPT", kept)
    processor = load_vocabulary(world / "v.model")
    draw = random.Random(4)
    characters = "".join(NASTY[1:10])
    lines = [*NASTY, *("".join(draw.choices(characters, k=30)) for _ in range(3_000))]
    encoder = subwords.WordEncoder(processor)
    assert encoder.by_words
    for start in range(0, len(lines), 100):
        packed = encoder.encode(lines[start : start + 100])
        expected = processor.encode(lines[start : start + 100])
        assert [np.frombuffer(ids, np.uint16).tolist() for ids in packed] == expected


def test_a_vocabulary_with_pieces_across_spaces_is_used_line_by_line():
    class Across:
        def get_piece_size(self):
            return 2

        def id_to_piece(self, at):
            return ["\u2581a", "\u2581a\u2581b"][at]

        def encode(self, lines, num_threads):
            return [[1] if line == "a b" else [0] for line in lines]

    encoder = subwords.WordEncoder(Across())
    assert encoder.encode(("a", "a b")) == [b"\0\0", b"\1\0"]


def test_a_shard_without_pairs_is_an_error_and_no_folder(world, tmp_path):
    (tmp_path / "de-en.tsv").write_text("\tcat\t1\n")
    with pytest.raises(EmsError, match=r"de-en\.tsv: no pair with tokens on both sides"):
        written(world, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["de-en.tsv"]


def test_a_vocabulary_that_uint16_cannot_hold_is_an_error(world, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_PIECES", 199)
    writer._encoder.cache_clear()
    with pytest.raises(EmsError, match=r"v\.model: 200 pieces; expected at most 199"):
        write_shards(world / "text" / "A" / "de-en.tsv", world / "v.model", tmp_path / "de-en")
    assert list(tmp_path.iterdir()) == []


# --- drawing


def test_a_batch_is_a_pure_function_of_seed_and_step(world):
    one, other = store(world), store(world)
    for _ in range(3):
        other.draw(9, 9, 7, 1.0)  # what was drawn before does not matter
    batch, again = one.draw(1, 5, 40, 0.5), other.draw(1, 5, 40, 0.5)
    for name in ("tokens", "lengths", "rows", "languages"):
        assert np.array_equal(getattr(batch, name), getattr(again, name))
    for seed, step in ((1, 6), (2, 5), (5, 1)):
        assert unpacked(one.draw(seed, step, 40, 0.5)) != unpacked(batch)


def pairs_of(world, name, limit=LIMIT):
    """((language, tokens), (language, tokens)) of each pair of a shard."""
    ids = {code: sentences(shard_of(world, name), code) for code in name[2:].split("-")}
    sides = [[(LANGUAGES.index(c), tuple(own[:limit])) for own in ids[c]] for c in ids]
    return list(zip(*sides, strict=True))


def test_a_batch_mixes_language_pairs_and_holds_only_pairs_of_the_shards(world):
    known = {pair for name in PAIRS for pair in pairs_of(world, name)}
    data = store(world)
    for step in range(20):
        pairs = unpacked(data.draw(3, step, 32, 0.5))
        assert len(pairs) == 32
        assert set(pairs) <= known
        assert {languages for (languages, _), _ in pairs} == {0, 1}  # en-ja and de-en


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_language_pairs_are_drawn_by_size_to_the_alpha_and_their_pairs_uniformly(tmp_path, alpha):
    parts = [("A/de-en", 0, 300), ("A/en-ja", 300, 90), ("B/de-en", 390, 150), ("B/en-ja", 540, 10)]
    folders = [  # sentence i of a shard is the token first + i
        write_shard(tmp_path / name, first + np.arange(size), [1] * size, name[2:].split("-"))
        for name, first, size in parts
    ]
    data = PairStore(folders, LANGUAGES, LIMIT)
    assert data.sizes.tolist() == [450, 100]
    counts, draws = [0] * 550, 100_000
    for step in range(100):
        for (_, first), (_, second) in unpacked(data.draw(4, step, draws // 100, alpha)):
            assert first == second
            counts[first[0]] += 1
    total = 450**alpha + 100**alpha
    german = sum(counts[:300]) + sum(counts[390:540])
    share = 450**alpha / total
    assert abs(german - draws * share) < 5 * (draws * share * (1 - share)) ** 0.5
    for token, count in enumerate(counts):
        size = 450 if token < 300 or 390 <= token < 540 else 100
        expected = draws * size**alpha / total / size
        assert abs(count - expected) < 5 * expected**0.5


# --- assembling


def own_batch(world, names, chosen, limit):
    """The pairs `chosen`, shards of a language pair counted one after the other."""
    rows = {}
    for name in names:
        rows.setdefault(name[2:], []).extend(pairs_of(world, name, limit))
    groups = sorted(rows)
    return [rows[groups[group]][at] for group, at in chosen]


@pytest.mark.parametrize("limit", [3, 10_000])
@pytest.mark.parametrize("names", [list(PAIRS), ["B/en-ja", "B/de-en", "A/en-ja", "A/de-en"]])
def test_a_batch_equals_a_plain_loop_over_the_files(world, limit, names):
    draw = random.Random(2)
    edges = [(0, 0), (0, 399), (0, 400), (0, 549), (1, 0), (1, 89), (1, 90), (1, 99)]
    edges += [(0, 149), (0, 150), (1, 9), (1, 10)]
    chosen = [*edges, *((0, draw.randrange(550)) for _ in range(50)), (0, 0)]
    draw.shuffle(chosen)
    groups, within = (np.array(column) for column in zip(*chosen, strict=True))
    batch = store(world, *names, limit=limit).assemble(groups, within)
    expected = own_batch(world, names, chosen, limit)
    assert batch.pairs == len(expected)
    assert unpacked(batch) == expected
    # sentences of like length lie together, in the order of their rows
    places = list(zip(batch.lengths.tolist(), batch.rows.tolist(), strict=True))
    assert places == sorted(places)
    assert sorted(batch.rows.tolist()) == list(range(2 * len(expected)))


def test_in_order_visits_every_pair_once(world):
    data = store(world, limit=10_000)
    batches = list(in_order(data, 64))
    pairs = [pair for batch in batches for pair in unpacked(batch)]
    every = [(0, at) for at in range(550)] + [(1, at) for at in range(100)]
    assert pairs == own_batch(world, list(PAIRS), every, 10_000)
    assert max(batch.pairs for batch in batches) == 64
    assert all(len(set(batch.languages.tolist())) == 2 for batch in batches)


# --- spoilt shards


@pytest.fixture
def shard(world, tmp_path):
    write_shards(world / "text" / "B" / "en-ja.tsv", world / "v.model", tmp_path / "en-ja")
    return tmp_path / "en-ja" / "00000"


@pytest.mark.parametrize("name", ["en.ids", "ja.ids", "en.offsets", "ja.offsets", "lines"])
@pytest.mark.parametrize("change", [-1, -2, 1, None], ids=["-1", "-2", "+1", "absent"])
def test_a_file_of_another_size_is_an_error_that_names_it(shard, name, change):
    content = (shard / name).read_bytes()
    if change is None:
        (shard / name).unlink()
    else:
        (shard / name).write_bytes(content[:change] if change < 0 else content + b"x")
    with pytest.raises(EmsError, match=rf"{name}: expected .* bytes by its manifest, found"):
        Shard(shard)


def test_shards_of_two_vocabularies_do_not_mix(world, tmp_path):
    other = vocabulary(tmp_path / "other.model", size=150)
    write_shards(world / "text" / "B" / "en-ja.tsv", other, tmp_path / "en-ja")
    with pytest.raises(EmsError, match="expected shards of one vocabulary, found 2"):
        PairStore([shard_of(world, "A/de-en"), tmp_path / "en-ja" / "00000"], LANGUAGES, LIMIT)
