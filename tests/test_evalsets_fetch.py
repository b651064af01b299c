"""Fetching evaluation sets: a unit is complete and readable, or absent; its manifest is last."""

import dataclasses
import hashlib
import json
import shutil

import pytest
from conftest import copy_project
from made import evalsets as made
from made.experiments import one_line
from made.places import flip
from made.web import source_of

from ems.config.plugins import benchmark, module, sets
from ems.corpora.content import check_file
from ems.corpora.evalsets import fetch as fetching
from ems.corpora.evalsets import sets as evalsets
from ems.corpora.evalsets.fetch import SetSource
from ems.corpora.evalsets.sets import unit as unit_of
from ems.corpora.slots import MACHINE

DEV = "flores200_dataset/dev/deu_Latn"
FLORES = {
    f"{DEV}.dev": b"eins\nzwei\n",
    "flores200_dataset/devtest/deu_Latn.devtest": b"drei\n",
    "flores200_dataset/README": b"",
}
AUGMENTED, KINDS = "eng_Latn_augmented.devtest", "eng_Latn_errtype.devtest.json"
COUNTERFACTUAL = {"DE_test.tsv": b"sentence\tis_counterfactual\nWenn.\t1\nIst.\t0\n"}
MARC = "test/dataset_de_test.json"
UNITS = {  # (set, unit) -> the archive if it is one, its members or files, what the unit counts
    ("bucc2018", "de-en.training"): ("bucc2018-de-en.training-gold.tar.bz2", made.bucc(), 3),
    ("xnli", "xnli"): ("XNLI-1.0.zip", made.xnli(), 16),
    ("xnli", "xnli-mt"): ("XNLI-MT-1.0.zip", made.xnli_mt(), 2),
    ("pawsx", "x-final"): ("x-final.tar.gz", made.pawsx(), 28),
    ("cls", "cls"): ("cls-acl10-unprocessed.tar.gz", made.cls(), 48),
    ("flores200", "flores200_dataset"): ("flores200_dataset.tar.gz", FLORES, 3),
    ("tatoeba", "deu"): ("", made.TATOEBA, 2),
    ("flores200", "deu_Latn"): ("", made.FLORES, 3),
    ("sib200", "deu_Latn"): ("", made.SIB, 5),
    ("xsimpp", AUGMENTED): ("", {AUGMENTED: made.xsimpp()[AUGMENTED]}, 3),
    ("xsimpp", KINDS): ("", {KINDS: made.xsimpp()[KINDS]}, 2),
    ("marc", "de.test"): ("", {MARC: made.marc()[MARC]}, 3),
    ("counterfactual", "DE_test.tsv"): ("", COUNTERFACTUAL, 2),
    ("wmt24pp", "en-de_DE"): ("", made.WMT, 2),
    ("alignment", "dev.de"): ("", {"dev.de": b"eins\nzwei\n"}, 2),
    ("alignment", "dev.defr"): ("", {"dev.defr": b"[0]:[0]\n[1]:[]\n[]:[1]\n"}, 3),
}
LANGUAGES = [("tatoeba", "deu"), ("flores200", "deu_Latn"), ("sib200", "deu_Latn")]
every_unit = pytest.mark.parametrize(("name", "unit"), UNITS)
every_language = pytest.mark.parametrize(("name", "unit"), LANGUAGES)
both = pytest.mark.parametrize("kind", ["directory", "host"])


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Every unit as published, but small, with matching checksums."""
    folder, sums = tmp_path / "mirror", {}
    for key, (archive, files, _) in UNITS.items():
        if archive:
            sums[key] = made.pack(folder / archive, files)
        else:
            made.write_files(folder, files)
            sums[key] = hashlib.sha256(next(iter(files.values()))).hexdigest()
    set_sums(monkeypatch, sums)
    return folder


def set_sums(monkeypatch, sums):
    """Replace the published checksums, by set and unit."""
    units = evalsets.units

    def with_sum(unit, name, key):
        return dataclasses.replace(unit, sha256=unit.sha256 and sums.get((name, key), unit.sha256))

    def replaced(name):
        return {key: with_sum(unit, name, key) for key, unit in units(name).items()}

    monkeypatch.setattr(evalsets, "units", replaced)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def fetch_evalset(name, source, unit, out, locked=True):
    return SetSource(name, source, out, locked).fetch(unit)


def failure(name, unit, source, out):
    return one_line(fetch_evalset, name, str(source), unit, out)


def files_below(folder):
    """The content of every file."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@both
@every_unit
def test_a_unit_has_its_files_their_locks_and_a_manifest(mirror, out, kind, name, unit):
    archive, files, count = UNITS[name, unit]
    if archive:
        place = unit_of(name, unit).place
        files = {place(key): content for key, content in files.items() if place(key)}
    with source_of(kind, mirror) as source:
        assert fetch_evalset(name, source, unit, out) == count
        assert fetch_evalset(name, source, unit, out) == count  # a second time changes nothing
    found = files_below(out)
    assert files
    assert {path: found.get(path) for path in files} == files
    sums = {
        path: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for path, content in files.items()
    }
    assert json.loads(found[f"{unit}.manifest.json"]) == {
        **{"evalset": name, "unit": unit, "licence": benchmark(name).licence},
        **{"read": count, "files": sums},
    }
    prefix = f"{fetching.ARCHIVES}/" if archive else ""
    locks = {f"{prefix}{file}.lock.json": file for file in unit_of(name, unit).files}
    for path, file in locks.items():
        lock = json.loads(found[path])
        assert (lock["url"], lock["bytes"]) == (f"{source}/{file}", (mirror / file).stat().st_size)
    assert found.keys() == {*files, f"{unit}.manifest.json", *locks}
    check_file(out / f"{unit}.manifest.json")


@every_language
def test_files_without_a_manifest_are_checked_and_not_fetched_again(mirror, out, name, unit):
    fetch_evalset(name, str(mirror), unit, out)
    manifest, before = out / f"{unit}.manifest.json", files_below(out)
    manifest.unlink()  # as if the job was killed at its end
    shutil.rmtree(mirror)
    fetch_evalset(name, str(mirror), unit, out)
    assert files_below(out) == before
    assert "no such file" in failure(name, unit, mirror, out)  # with a manifest it is fetched
    manifest.unlink()
    assert "no such file" in failure(name, unit, f"{mirror}2", out)  # another source
    last = out / [*UNITS[name, unit][1]][-1]
    last.write_bytes(last.read_bytes() + b"!\n")  # differs from its lock
    assert "no such file" in failure(name, unit, mirror, out)


@every_language
def test_generated_files_may_change(mirror, out, name, unit):
    *_, last = UNITS[name, unit][1]
    for _ in range(2):
        fetch_evalset(name, str(mirror), unit, out, locked=False)
        assert (out / last).read_bytes() == (mirror / last).read_bytes()
        (mirror / last).write_bytes((out / last).read_bytes().removesuffix(b"\n") + b"!\n")


@pytest.mark.parametrize(("name", "unit"), [("tatoeba", "deu"), ("pawsx", "x-final")])
def test_a_source_that_changed_is_an_error_that_names_the_lock(mirror, out, name, unit):
    *_, last = unit_of(name, unit).files
    fetch_evalset(name, str(mirror), unit, out)
    before = files_below(out)
    if name == "pawsx":
        made.pack(mirror / last, made.pawsx() | {"x-final/more": b"x"})
    else:
        (mirror / last).write_bytes((mirror / last).read_bytes().removesuffix(b"\n") + b"!\n")
    line = failure(name, unit, mirror, out)
    assert line.startswith(f"{mirror}/{last}: ")
    assert "the source changed" in line
    assert f"{last}.lock.json" in line
    assert files_below(out) == before


@both
@every_unit
def test_a_missing_file_is_an_error_with_its_location(mirror, out, kind, name, unit):
    *_, last = unit_of(name, unit).files
    (mirror / last).unlink()
    with source_of(kind, mirror) as source:
        assert failure(name, unit, source, out).startswith(f"{source}/{last}: ")
    assert files_below(out) == {}


def test_a_wrong_checksum_is_an_error_that_names_both(mirror, out, monkeypatch):
    path = mirror / "XNLI-1.0.zip"
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    sha256 = made.pack(path, made.xnli() | {"more": b""})
    with source_of("host", mirror) as source:
        line = failure("xnli", "xnli", source, out)
    assert line.startswith(f"{source}/XNLI-1.0.zip: sha256 {sha256}, but the published ")
    assert expected in line
    assert "evalsets.xnli.path" in line
    monkeypatch.undo()  # the shipped checksum
    line = failure("xnli", "xnli", mirror, out)
    assert "4ba1d5e1afdb7161f0f23c66dc787802ccfa8a25a3ddd3b165a35e50df346ab1" in line
    assert files_below(out) == {}


def spoilt(members, **changes):
    """Replace the content of the members with these name endings; None removes one."""
    changed = dict(members)
    for ending, content in changes.items():
        (name,) = [name for name in members if name.endswith(ending.replace("__", "."))]
        changed[name] = content
    return {name: content for name, content in changed.items() if content is not None}


DE = ("bucc2018", "de-en.training")
MALFORMED = [  # the unit, its file or the members of its archive, the message after its name
    (*DE, spoilt(made.bucc(), __de=b"de-1\ta\nde-2\n"), "de-en/de-en.training.de: line 2: expecte"),
    (*DE, spoilt(made.bucc(), __gold=None), "de-en/de-en.training.gold: no such file"),
    (*DE, made.bucc("fr"), "none of its 3 members has an expected name"),
    ("xnli", "xnli", spoilt(made.xnli(), test__tsv=None), "XNLI-1.0/xnli.test.tsv: no such file"),
    ("pawsx", "x-final", {"x-final/de/dev_2k.tsv": b"1\t2\n"}, "de/dev_2k.tsv: expected the colum"),
    ("cls", "cls", made.cls() | {"cls-acl10-unprocessed/fr/dvd/test.review": b"<items>"}, "fr/dvd"),
    (*("flores200", "flores200_dataset"), {f"{DEV}.dev": b"a\n\nb\n"}, "deu_Latn.dev: line 2 is e"),
    ("flores200", "deu_Latn", b"a\n\nb\n", "line 2 is empty"),
    ("flores200", "deu_Latn", b"<html>\nSorry\n</html>\n", "found a web page"),
    ("sib200", "deu_Latn", b"0\ttravel\ttext\n", "expected the columns index_id, category"),
    ("tatoeba", "deu", b"\xff\n", "line 1 is not UTF-8"),
    ("tatoeba", "deu", b"a\n", "has 1; both sides must have the same number of lines"),
    ("xsimpp", KINDS, b"{", "not valid JSON"),
]


@both
@pytest.mark.parametrize(("name", "unit", "content", "message"), MALFORMED)
def test_a_malformed_download_is_one_line_and_leaves_no_file_and_no_lock(
    mirror, out, monkeypatch, kind, name, unit, content, message
):
    *_, last = unit_of(name, unit).files
    if isinstance(content, dict):
        set_sums(monkeypatch, {(name, unit): made.pack(mirror / last, content)})
    else:
        (mirror / last).write_bytes(content)
    with source_of(kind, mirror) as source:
        line = failure(name, unit, source, out)
    assert line.startswith(f"{source}: " if "both sides" in message else f"{source}/{last}: ")
    assert message in line
    assert files_below(out) == {}


def test_a_killed_job_leaves_no_manifest_and_the_next_one_cleans_up(mirror, out, monkeypatch):
    stale = made.write_files(out / f".unit-x-final.{MACHINE}.abc.part", {"de/dev_2k.tsv": b"half"})
    whole = fetching.atomic_path

    def dies(path):
        if path.name == "test_2k.tsv":
            raise KeyboardInterrupt
        return whole(path)

    monkeypatch.setattr(fetching, "atomic_path", dies)
    with pytest.raises(KeyboardInterrupt):
        fetch_evalset("pawsx", str(mirror), "x-final", out)
    assert "de/dev_2k.tsv" in files_below(out)
    assert not list(out.glob("*.manifest.json"))
    monkeypatch.setattr(fetching, "atomic_path", whole)
    fetch_evalset("pawsx", str(mirror), "x-final", out)
    assert not stale.exists()
    assert not list(out.rglob("*.part"))


def test_the_command_fetches_from_the_embedded_mirror_by_the_table_of_its_checkout(tmp_path):
    project = copy_project(tmp_path / "project")
    made.write_files(project.folder / "data/embedded/tatoeba", made.TATOEBA)
    fetch = ("python", "-m", "ems.commands.cli", "fetch-evalset", "--out", "out", "--source")
    project.run(*fetch, "embedded", "--evalset", "tatoeba", "--code", "deu")
    found = files_below(project.folder / "out")
    assert {name: found[name] for name in made.TATOEBA} == made.TATOEBA
    sha256 = made.pack(tmp_path / "mirror" / "XNLI-1.0.zip", made.xnli())
    project.edit("ems/benchmarks/xnli/units.tsv", unit_of("xnli", "xnli").sha256, sha256)
    project.run(*fetch, str(tmp_path / "mirror"), "--evalset", "xnli", "--code", "xnli")
    assert (project.folder / "out" / "xnli.manifest.json").is_file()


def test_every_set_has_a_reader_and_every_unit_an_address():
    every = [unit for name in sets() for unit in evalsets.units(name).values()]
    for unit in every:
        assert benchmark(unit.set).status in ("open", "closed", "withdrawn")
        assert unit.base.startswith("https://")
        assert len(unit.sha256) in (0, 64)
    documented = {unit.set for unit in every if unit.sha256}
    names = {"flores200", "bucc2018", "xnli", "marc", "counterfactual", "wmt24pp", "alignment"}
    assert documented == names
    fetched = {name for name in sets() if evalsets.units(name) or benchmark(name).by_language}
    assert all(hasattr(module(name, "data"), "read_unit") for name in fetched)
    assert fetched == {name for name, _ in UNITS}


def test_units_are_fetched_together_and_again_only_if_they_or_their_place_changed(mirror, out):
    units = ["xnli", "xnli-mt"]
    manifests = {unit: out / f"{unit}.manifest.json" for unit in units}

    def fetch(source):
        times = {
            unit: path.exists() and path.stat().st_mtime_ns for unit, path in manifests.items()
        }
        made = SetSource("xnli", str(source), out).fetch_all(units)
        assert made == {unit: check_file(path) for unit, path in manifests.items()}
        return [unit for unit, path in manifests.items() if times[unit] != path.stat().st_mtime_ns]

    archive = mirror / UNITS["xnli", "xnli"][0]
    content = archive.read_bytes()
    archive.unlink()
    assert f"{archive}: no such file" in one_line(fetch, mirror)
    archive.write_bytes(content)
    assert fetch(mirror) == ["xnli"]
    assert fetch(mirror) == []
    flip(next(out / name for name in json.loads(manifests["xnli-mt"].read_text())["files"]))
    assert fetch(mirror) == ["xnli-mt"]
    shutil.copytree(mirror, mirror.with_name("other"))
    assert fetch(mirror.with_name("other")) == units
