"""Laws of many shards: into how many a pair is cut changes no batch, none of them is lost,
and the list that training reads names whole ones."""

import json
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import needs
from made.shards import LANGUAGES, in_order, sentences, unpacked, vocabulary, write_pairs

from ems.base.errors import EmsError
from ems.commands.cli import main
from ems.shards.index import read_index, shards_in, write_index
from ems.shards.reader import PairStore
from ems.shards.shard import Shard, allow_open_files, verify_shards
from ems.shards.writer import write_shards

SOURCES = {"A/v1/de-en": 400, "B/v1/de-en": 150, "A/v1/en-ja": 90, "B/v1/en-ja": 10}
SIZES = [7, 1_000]  # pairs of a shard
LIMIT = 12


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The same four pair files as shards of 7 pairs and of 1,000; in one of them rows without
    tokens, a whole shard of them too.
    """
    folder, draw = tmp_path_factory.mktemp("world"), random.Random(3)
    model = vocabulary(folder / "v.model", 200)
    for name, count in SOURCES.items():
        source = write_pairs(folder / "text" / f"{name}.tsv", count, draw)
        if name == "A/v1/de-en":
            rows = source.read_text().splitlines(keepends=True)
            for at in [3, 50, *range(70, 84)]:  # 70 to 83: the shards 10 and 11
                rows[at] = rows[at].replace(rows[at].split("\t")[0], " ", 1)
            source.write_text("".join(rows))
        for size in SIZES:
            write_shards(source, model, folder / str(size) / name, pairs=size)
    for size in SIZES:
        folders = [folder / str(size) / name for name in reversed(SOURCES)]
        write_index({"train": folders, "validation": []}, folder / str(size) / "index.json")
    return folder


def store(world, size, limit=LIMIT):
    return PairStore(read_index(world / str(size) / "index.json")["train"], LANGUAGES, limit)


def test_the_size_of_shards_changes_no_batch_and_no_validation(world):
    small, large = (store(world, size) for size in SIZES)
    assert len(small.shards) > 80
    assert len(large.shards) == len(SOURCES)
    assert small.sizes.tolist() == large.sizes.tolist() == [550 - 16, 100]
    for step in range(50):
        one, other = (each.draw(7, step, 64, 0.5) for each in (small, large))
        for name in ("tokens", "lengths", "rows", "languages"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), (step, name)
    one, other = (list(map(unpacked, in_order(each, 32))) for each in (small, large))
    assert one == other


def test_shards_one_after_the_other_are_the_one_shard(world):
    small = shards_in(world / "7" / "A/v1/de-en")
    (large,) = shards_in(world / "1000" / "A/v1/de-en")
    for code in ("de", "en"):
        assert [s for shard in small for s in sentences(shard, code)] == sentences(large, code)
    lines = [line for shard in small for line in Shard(shard).lines.tolist()]
    assert lines == Shard(large).lines.tolist()
    dropped = {3, 50, *range(70, 84)}
    assert lines == [3 * at + 2 for at in range(400) if at not in dropped]


def test_the_manifest_of_a_folder_adds_its_shards_up_and_leaves_out_those_without_a_pair(world):
    folder = world / "7" / "A/v1/de-en"
    whole = json.loads((folder / "manifest.json").read_text())
    names = [f"{at:05}" for at in range(58) if at not in (10, 11)]
    assert [shard.name for shard in shards_in(folder)] == names
    assert sorted(path.name for path in folder.iterdir()) == [*names, "manifest.json"]
    parts = [json.loads((s / "manifest.json").read_text()) for s in shards_in(folder)]
    assert (whole["pairs"], whole["dropped"]) == (384, 16)
    assert whole["pairs"] == sum(part["pairs"] for part in parts)
    assert all(0 < part["pairs"] <= 7 for part in parts)
    for code in ("de", "en"):
        assert whole["tokens"][code] == sum(part["tokens"][code] for part in parts)
        assert sum(whole["lengths"][code]) == 384
    large = json.loads((world / "1000" / "A/v1/de-en" / "manifest.json").read_text())
    assert {**whole, "shards": None} == {**large, "shards": None}


# --- the order of the columns


def test_a_pair_is_one_group_whatever_the_order_of_its_sides(world, tmp_path):
    """The same pairs with their columns the other way round give the same batches."""
    rows = [line.split("\t") for line in (world / "text/A/v1/de-en.tsv").read_text().splitlines()]
    source = tmp_path / "en-de.tsv"
    source.write_text("".join(f"{b}\t{a}\t{line}\n" for a, b, line in rows))
    write_shards(source, world / "v.model", tmp_path / "en-de", pairs=7)
    turned = shards_in(tmp_path / "en-de"), shards_in(world / "7" / "B/v1/de-en")
    plain = shards_in(world / "7" / "A/v1/de-en"), shards_in(world / "7" / "B/v1/de-en")
    one, other = (PairStore([*a, *b], LANGUAGES, LIMIT) for a, b in (turned, plain))
    assert list(one.groups) == list(other.groups) == [("de", "en")]
    for step in range(10):
        assert unpacked(one.draw(1, step, 30, 1.0)) == unpacked(other.draw(1, step, 30, 1.0))


# --- the index


SPOIL = {
    "gone": lambda folder: shutil.rmtree(folder / "00003"),
    "another": lambda folder: shutil.copy(folder / "00004" / "manifest.json", folder / "00003"),
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
}


@pytest.mark.parametrize("spoil", SPOIL.values(), ids=SPOIL)
def test_a_shard_that_its_folder_does_not_list_so_is_refused(world, tmp_path, spoil):
    folder = shutil.copytree(world / "7" / "B/v1/de-en", tmp_path / "de-en")
    spoil(folder)
    with pytest.raises(EmsError, match=r"not a shard: it has no|not the shard that .* lists"):
        write_index({"train": [folder]}, tmp_path / "index.json")
    assert not (tmp_path / "index.json").exists()


def listed(tmp_path):
    """Three shard folders (an index looks at their manifests only) and the index of them."""
    roles = {"train": ["A/v1/de-en", "A/v1/en-fr"], "validation": ["B/v1/de-en"]}
    folders = {role: [tmp_path / name for name in names] for role, names in roles.items()}
    for number, folder in enumerate([*folders["train"], *folders["validation"]], start=1):
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"pairs": number}))
    write_index(folders, tmp_path / "index.json")
    return folders, tmp_path / "index.json"


def test_what_was_listed_is_what_is_read_in_its_order_also_when_it_has_moved(tmp_path):
    (tmp_path / "here").mkdir()
    folders, path = listed(tmp_path / "here")
    assert read_index(path) == folders
    shutil.move(tmp_path / "here", tmp_path / "there")
    moved = {
        role: [f.relative_to(tmp_path / "here") for f in each] for role, each in folders.items()
    }
    there = {role: [tmp_path / "there" / f for f in each] for role, each in moved.items()}
    assert read_index(tmp_path / "there" / path.name) == there


def test_a_shard_without_pairs_is_not_listed(tmp_path):
    """What is left of a small file when its first lines validate; nobody must draw from it."""
    folders, path = listed(tmp_path)
    (folders["train"][1] / "manifest.json").write_text(json.dumps({"pairs": 0, "shards": {}}))
    write_index(folders, path)
    assert read_index(path) == {**folders, "train": folders["train"][:1]}


@pytest.mark.parametrize(
    "spoil", [Path.unlink, lambda manifest: manifest.write_text('{"pairs": 99}')]
)
def test_a_shard_that_is_not_the_listed_one_is_refused(tmp_path, spoil):
    folders, path = listed(tmp_path)
    spoil(folders["train"][1] / "manifest.json")
    with pytest.raises(EmsError, match=r"en-fr: not there, or not the shard that .*index\.json"):
        read_index(path)


def test_an_index_needs_no_validation_and_takes_any_spelling_of_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed(tmp_path)
    (tmp_path / "odd").mkdir()
    job = ["index", "--training", "A/v1/de-en", "--out"]
    for out in ("one.json", "odd/../two.json", str(tmp_path / "three.json")):
        assert main([*job, out]) == 0
        assert [folder.name for folder in read_index(Path(out))["train"]] == ["de-en"]
    assert main([*job, "odd/index.json"]) == 1  # a list names shards below its folder


# --- open files

READ_ALL = """
import resource, sys
from pathlib import Path
from ems.shards.index import read_index
from ems.shards.reader import PairStore
soft, hard = map(int, sys.argv[2:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
store = PairStore(read_index(Path(sys.argv[1]))["train"], ["en", "de", "ja"], 12)
assert not any("ids" in vars(shard) for shard in store.shards)  # nothing is open yet
print(sum(store.assemble(*places).pairs for places in store.places_in_order(50)))
"""


def test_more_shards_than_a_process_may_have_open_files_are_read_where_the_limit_can_be_raised(
    world,
):
    def read_all(soft, hard):
        command = [sys.executable, "-c", READ_ALL, world / "7" / "index.json", f"{soft}", f"{hard}"]
        return subprocess.run(command, capture_output=True, text=True)

    done = read_all(64, 1_000)  # 90 shards, four files each
    assert done.stdout == "634\n", done.stderr
    assert "may open only 128 here (ulimit -Hn)" in read_all(64, 128).stderr


def test_the_limit_of_open_files_is_never_lowered():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        allow_open_files(8)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert hard == before[1]
        assert soft in (before[0] + 8, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_shards_are_read_without_read_ahead(world):
    """A shard larger than memory is read a few numbers at a time: `rr` is the kernel's word."""
    needs(Path("/proc/self/smaps").is_file(), "the kernel has no smaps")
    small = store(world, 7)
    small.check(200)
    names = {path for shard in small.shards for path in map(str, shard.folder.resolve().iterdir())}
    advised, at = {}, None
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            at = words[-1]
        elif words[0] == "VmFlags:" and at in names:
            advised[at] = "rr" in words
    assert len(advised) >= 4 * len(small.shards)
    assert all(advised.values())


def test_a_billion_pairs_are_counted_through_without_a_number_that_overflows(world):
    whole = store(world, 7)
    for shard in whole.shards:
        shard.pairs = 1_000_000_007
    whole._count()
    assert int(whole.sizes.sum()) == 1_000_000_007 * len(whole.shards) > 2**36
    groups, within = whole.drawn(3, 5, 2_000, 1.0)
    assert within.max() > 2**33
    shards, rows = whole._locate(groups, within)
    assert rows.min() >= 0
    assert rows.max() < 1_000_000_007
    before = {shard: at * 1_000_000_007 for at, shard in enumerate(whole._order.tolist())}
    places = np.array([before[shard] for shard in shards.tolist()]) + rows
    assert np.array_equal(places, whole._begins[groups] + within)


# --- checksums


@pytest.mark.parametrize("name", ["de.ids", "en.offsets", "lines"])
def test_a_changed_byte_is_found_by_verify(world, tmp_path, name):
    folder = shutil.copytree(world / "7" / "B/v1/de-en", tmp_path / "de-en") / "00003"
    shard = Shard(folder)
    verify_shards([shard])
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(EmsError, match=rf"00003/{name}: its SHA-256 is not the one in"):
        verify_shards([Shard(folder)])
