"""The tiny experiment where every folder that a user can name has a nasty name."""

import shutil
from pathlib import Path

import pytest
from conftest import Project, copy_project
from names_made import NASTY, quoted


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory, demo_mirror: Path) -> Project:
    """A project in which `snakemake all` has run `tiny` from a nasty folder, with nasty places."""
    folder = tmp_path_factory.mktemp("names") / f"{NASTY} {{}} {{x}}"
    folder.mkdir()
    mirror = shutil.copytree(demo_mirror, folder.parent / NASTY)
    project = copy_project(folder)
    project.edit("config.yaml", "data: data #", f"data: {quoted(NASTY[1:])} #")
    places = {"Demo, version: v1": ("source", "opus"), "{version: demo-v1": ("path", "tatoeba")}
    for text, (key, name) in places.items():
        place = quoted(mirror / name)
        project.edit("configs/tiny.yaml", text, f"{text}, {key}: {place}")
    project.snakemake("all")
    return project


def test_nasty_names_give_the_same_tables_and_nothing_of_them_is_run(
    nasty: Project, tiny_run: Project
) -> None:
    assert (nasty.folder / NASTY[1:] / "opus/Demo").is_dir()
    assert nasty.tables() == tiny_run.tables()
    assert list(nasty.folder.parent.rglob("pwned")) == []


def test_a_second_run_has_nothing_to_do_there_either(nasty: Project) -> None:
    assert "Nothing to be done" in nasty.snakemake("all")
