"""Laws of the list of shards that training reads: it names whole shards, and no others."""

import json
import shutil
from pathlib import Path

import pytest

from ems.cli import main
from ems.errors import EmsError
from ems.shards.index import read_index, write_index


def made(tmp_path):
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
    folders, path = made(tmp_path / "here")
    assert read_index(path) == folders
    shutil.move(tmp_path / "here", tmp_path / "there")
    moved = {
        role: [f.relative_to(tmp_path / "here") for f in each] for role, each in folders.items()
    }
    there = {role: [tmp_path / "there" / f for f in each] for role, each in moved.items()}
    assert read_index(tmp_path / "there" / path.name) == there


def test_a_shard_without_pairs_is_not_listed(tmp_path):
    """What is left of a small file when its first lines validate; nobody must draw from it."""
    folders, path = made(tmp_path)
    (folders["train"][1] / "manifest.json").write_text(json.dumps({"pairs": 0, "shards": {}}))
    write_index(folders, path)
    assert read_index(path) == {**folders, "train": folders["train"][:1]}


@pytest.mark.parametrize(
    "spoil", [Path.unlink, lambda manifest: manifest.write_text('{"pairs": 99}')]
)
def test_a_shard_that_is_not_the_listed_one_is_refused(tmp_path, spoil):
    folders, path = made(tmp_path)
    spoil(folders["train"][1] / "manifest.json")
    with pytest.raises(EmsError, match=r"en-fr: not there, or not the shard that .*index\.json"):
        read_index(path)


def test_an_index_needs_no_validation_and_takes_any_spelling_of_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path)
    (tmp_path / "odd").mkdir()
    job = ["index", "--training", "A/v1/de-en", "--out"]
    for out in ("one.json", "odd/../two.json", str(tmp_path / "three.json")):
        assert main([*job, out]) == 0
        assert [folder.name for folder in read_index(Path(out))["train"]] == ["de-en"]
    assert main([*job, "odd/index.json"]) == 1  # a list names shards below its folder
