"""Laws of fetching what comes in archives: whole and read, or not at all; the manifest is last."""

import dataclasses
import hashlib
import json
import shutil
import tarfile

import evalsets_made as made
import pytest
from conftest import copy_project
from host_made import source_of

from ems.benchmarks import benchmark, module, sets
from ems.cli import main
from ems.evalsets import fetch as fetching
from ems.evalsets import units as of_units
from ems.evalsets.units import unit as unit_of

ARCHIVES = {  # set -> unit -> (file, members)
    "bucc2018": {
        "de-en.training": ("bucc2018-de-en.training-gold.tar.bz2", made.bucc()),
        "fr-en.sample": ("bucc2018-fr-en.sample-gold.tar.bz2", made.bucc("fr", "sample")),
    },
    "xnli": {
        "xnli": ("XNLI-1.0.zip", made.xnli()),
        "xnli-mt": ("XNLI-MT-1.0.zip", made.xnli_mt()),
    },
    "pawsx": {"x-final": ("x-final.tar.gz", made.pawsx())},
    "cls": {"cls": ("cls-acl10-unprocessed.tar.gz", made.cls())},
    "flores200": {
        "flores200_dataset": (
            "flores200_dataset.tar.gz",
            {
                "flores200_dataset/dev/deu_Latn.dev": b"eins\nzwei\n",
                "flores200_dataset/devtest/deu_Latn.devtest": b"drei\n",
                "flores200_dataset/README": b"",
            },
        )
    },
}
FILES = {  # set -> unit -> (file, content)
    "xsimpp": {name: (name, content) for name, content in made.xsimpp().items()},
    "marc": {
        f"de.{name.partition('/')[0]}": (name, content) for name, content in made.marc().items()
    },
    "counterfactual": {
        "DE_test.tsv": ("DE_test.tsv", b"sentence\tis_counterfactual\nWenn.\t1\nIst.\t0\n")
    },
}
READ = {  # what a unit counts
    "de-en.training": 3,
    "fr-en.sample": 3,
    "xnli": 16,
    "xnli-mt": 2,
    "x-final": 28,
    "cls": 48,
    "flores200_dataset": 3,
    "eng_Latn_augmented.devtest": 3,
    "eng_Latn_errtype.devtest.json": 2,
    "de.train": 3,
    "de.dev": 3,
    "de.test": 3,
    "DE_test.tsv": 2,
}
UNITS = [(name, unit) for kind in (ARCHIVES, FILES) for name, of in kind.items() for unit in of]
every_unit = pytest.mark.parametrize(("name", "unit"), UNITS)
both = pytest.mark.parametrize("kind", ["directory", "host"])


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Every unit in small as it is published; the documented sums are those of the small ones."""
    sums = {}
    for name, units in ARCHIVES.items():
        for unit, (file, members) in units.items():
            sums[name, unit] = made.pack(tmp_path / "mirror" / file, members)
    for name, units in FILES.items():
        for unit, (file, content) in units.items():
            made.write_files(tmp_path / "mirror", {file: content})
            sums[name, unit] = hashlib.sha256(content).hexdigest()
    set_sums(monkeypatch, sums)
    monkeypatch.chdir(tmp_path)  # the commands look for a config.yaml
    return tmp_path / "mirror"


def set_sums(monkeypatch, sums):
    """Other documented sums, by set and unit, of those that have one."""
    units = of_units.units

    def known(name):
        return {
            key: dataclasses.replace(
                unit, sha256=unit.sha256 and sums.get((name, key), unit.sha256)
            )
            for key, unit in units(name).items()
        }

    monkeypatch.setattr(of_units, "units", known)


def fetch(name, unit, source, out):
    """`ems fetch-evalset`; its exit status."""
    words = ["fetch-evalset", "--evalset", name, "--source", source, "--code", unit]
    return main([*words, "--out", str(out)])


def error(capfd, name, unit, source, out):
    """The one line that a fetch must fail with."""
    assert fetch(name, unit, source, out) == 1
    (line,) = [line for line in capfd.readouterr().err.splitlines() if " error: " in line]
    return line.partition(" error: ")[2]


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def expected_files(name, unit):
    """The files of a unit at their places, by name, as the archive has them."""
    if name in FILES:
        return dict([FILES[name][unit]])
    place = unit_of(name, unit).place
    members = ARCHIVES[name][unit][1]
    return {place(member): content for member, content in members.items() if place(member)}


@both
@every_unit
def test_a_unit_is_there_whole_with_a_manifest_of_its_files(mirror, tmp_path, kind, name, unit):
    out = tmp_path / "out"
    file = unit_of(name, unit).files[0]
    with source_of(kind, mirror) as source:
        assert fetch(name, unit, source, out) == 0
        assert fetch(name, unit, source, out) == 0  # a second time is no change
    expected = expected_files(name, unit)
    assert expected
    assert {path: (out / path).read_bytes() for path in expected} == expected
    manifest = json.loads((out / f"{unit}.manifest.json").read_text())
    assert manifest["files"] == {
        path: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for path, content in expected.items()
    }
    assert (manifest["evalset"], manifest["unit"], manifest["read"]) == (name, unit, READ[unit])
    assert manifest["licence"] == benchmark(name).licence
    place = f"{fetching.PLACE}/{file}" if name in ARCHIVES else file
    lock = json.loads((out / f"{place}.lock.json").read_text())
    assert (lock["url"], lock["bytes"]) == (f"{source}/{file}", (mirror / file).stat().st_size)
    assert files_below(out) == sorted([*expected, f"{unit}.manifest.json", f"{place}.lock.json"])


@both
def test_another_sum_than_the_documented_one_is_an_error_that_names_both(
    mirror, tmp_path, kind, capfd
):
    path = mirror / "XNLI-1.0.zip"
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    found = made.pack(path, made.xnli() | {"more": b""})
    with source_of(kind, mirror) as source:
        line = error(capfd, "xnli", "xnli", source, tmp_path / "out")
    assert line.startswith(f"{source}/XNLI-1.0.zip: sha256 {found}, but that of the published ")
    assert expected in line
    assert "evalsets.xnli.path" in line
    assert files_below(tmp_path / "out") == []


def test_the_documented_sums_are_held_without_the_tests_own(tmp_path, monkeypatch, capfd):
    """The guard of the tests above: the table that is shipped refuses the small archive."""
    monkeypatch.chdir(tmp_path)
    found = made.pack(tmp_path / "XNLI-1.0.zip", made.xnli())
    line = error(capfd, "xnli", "xnli", str(tmp_path), tmp_path / "out")
    assert found in line
    assert "4ba1d5e1afdb7161f0f23c66dc787802ccfa8a25a3ddd3b165a35e50df346ab1" in line


def test_a_changed_archive_without_a_documented_sum_is_held_against_its_lock(
    mirror, tmp_path, capfd
):
    assert fetch("pawsx", "x-final", str(mirror), tmp_path / "out") == 0
    before = files_below(tmp_path / "out")
    made.pack(mirror / "x-final.tar.gz", made.pawsx() | {"x-final/more": b"x"})
    line = error(capfd, "pawsx", "x-final", str(mirror), tmp_path / "out")
    assert "the source changed" in line
    assert "x-final.tar.gz.lock.json" in line
    assert files_below(tmp_path / "out") == before


def spoilt(members, **changes):
    """Members with the content of those whose name ends so replaced; None takes one out."""
    changed = dict(members)
    for ending, content in changes.items():
        (name,) = [name for name in members if name.endswith(ending.replace("__", "."))]
        changed[name] = content
    return {name: content for name, content in changed.items() if content is not None}


MALFORMED = [
    (
        "bucc2018",
        "de-en.training",
        spoilt(made.bucc(), __de=b"de-1\ta\nde-2\n"),
        ": de-en/de-en.training.de: line 2: expected id<TAB>sentence",
    ),
    ("bucc2018", "de-en.training", spoilt(made.bucc(), __gold=None), "training.gold: no such file"),
    ("bucc2018", "de-en.training", made.bucc("fr"), "none of its 3 members is one of those expe"),
    ("xnli", "xnli", spoilt(made.xnli(), test__tsv=None), "XNLI-1.0/xnli.test.tsv: no such file"),
    ("pawsx", "x-final", {"x-final/de/dev_2k.tsv": b"1\t2\n"}, ": de/dev_2k.tsv: expected the co"),
    ("cls", "cls", made.cls() | {"cls-acl10-unprocessed/fr/dvd/test.review": b"<items>"}, "line 1"),
    (
        "flores200",
        "flores200_dataset",
        {"flores200_dataset/dev/deu_Latn.dev": b"a\n\nb\n"},
        ": dev/deu_Latn.dev: line 2 is empty",
    ),
]


@both
@pytest.mark.parametrize(("name", "unit", "members", "message"), MALFORMED)
def test_a_malformed_archive_is_one_line_and_leaves_nothing(
    mirror, tmp_path, monkeypatch, capfd, kind, name, unit, members, message
):
    file = unit_of(name, unit).files[0]
    found = made.pack(mirror / file, members)
    set_sums(monkeypatch, {(name, unit): found})
    with source_of(kind, mirror) as source:
        line = error(capfd, name, unit, source, tmp_path / "out")
    assert line.startswith(f"{source}/{file}: ")
    assert message in line
    assert files_below(tmp_path / "out") == []


def test_a_malformed_file_that_is_no_archive_is_one_line_and_leaves_nothing(
    mirror, tmp_path, capfd
):
    path = mirror / "eng_Latn_errtype.devtest.json"
    path.write_text("{")
    line = error(capfd, "xsimpp", path.name, str(mirror), tmp_path / "out")
    assert line.startswith(f"{path}: not valid JSON")
    assert files_below(tmp_path / "out") == []


def test_an_archive_that_leads_elsewhere_is_refused(mirror, tmp_path, capfd):
    with tarfile.open(mirror / "x-final.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo("x-final/de/dev_2k.tsv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    line = error(capfd, "pawsx", "x-final", str(mirror), tmp_path / "out")
    assert "is a link" in line
    assert files_below(tmp_path / "out") == []


def test_what_a_killed_job_left_goes(mirror, tmp_path):
    stale = made.write_files(
        tmp_path / "out" / ".unit-x-final.abc.part", {"de/dev_2k.tsv": b"half"}
    )
    assert fetch("pawsx", "x-final", str(mirror), tmp_path / "out") == 0
    assert not stale.exists()


def test_a_job_that_dies_before_all_files_are_in_place_leaves_no_manifest(
    mirror, tmp_path, monkeypatch
):
    out, whole = tmp_path / "out", fetching.atomic_path

    def dies(path):
        if path.name == "test_2k.tsv":
            raise KeyboardInterrupt
        return whole(path)

    monkeypatch.setattr(fetching, "atomic_path", dies)
    assert fetch("pawsx", "x-final", str(mirror), out) == 130
    assert "de/dev_2k.tsv" in files_below(out)
    assert not list(out.glob("*.manifest.json"))
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert fetch("pawsx", "x-final", str(mirror), out) == 0
    assert not (out / fetching.PLACE / "x-final.tar.gz").exists()


def test_a_missing_archive_and_an_unknown_unit_are_one_line_each(mirror, tmp_path, capfd):
    line = error(capfd, "xnli", "xnli", str(tmp_path / "none"), tmp_path / "out")
    assert line.startswith(f"{tmp_path}/none/XNLI-1.0.zip: ")
    line = error(capfd, "bucc2018", "es-en.training", str(mirror), tmp_path / "out")
    assert "bucc2018 has no download 'es-en.training'; allowed values: de-en.sample" in line
    line = error(capfd, "tatoeba", "deu", "", tmp_path / "out")
    assert line.startswith("tatoeba: give --source")


def test_the_command_of_a_checkout_fetches_by_the_table_that_lies_in_it(tmp_path):
    project = copy_project(tmp_path / "project")
    found = made.pack(tmp_path / "mirror" / "XNLI-1.0.zip", made.xnli())
    documented = unit_of("xnli", "xnli").sha256
    project.edit("ems/benchmarks/xnli/units.tsv", documented, found)
    words = ("--evalset", "xnli", "--source", str(tmp_path / "mirror"), "--code", "xnli")
    project.run("python", "-m", "ems.cli", "fetch-evalset", *words, "--out", "out")
    assert (project.folder / "out" / "xnli.manifest.json").is_file()
    shutil.rmtree(project.folder)


def test_every_unit_can_be_read_and_the_documented_sums_look_like_sums():
    every = [unit for name in sets() for unit in of_units.units(name).values()]
    for unit in every:
        assert benchmark(unit.set).status in ("open", "closed", "withdrawn")
        assert unit.base.startswith("https://")
        assert len(unit.sha256) in (0, 64)
        assert hasattr(module(unit.set, "data"), "read_unit")
    documented = {unit.set for unit in every if unit.sha256}
    assert documented == {"flores200", "bucc2018", "xnli", "marc", "counterfactual"}
