"""Laws of the benchmarks' files: read as published, fetched whole or not at all, told by line."""

import json
import shutil

import pytest
from conftest import ROOT, SHARED, needs
from experiments_made import MINIMAL, Settings
from host_made import host, source_of
from mirror_made import write_flores, write_lines, write_opus, write_sib, write_tatoeba

import ems.benchmarks.flores200.data as flores200
import ems.benchmarks.sib200.data as sib200
import ems.benchmarks.tatoeba.data as tatoeba
from ems.benchmarks import sets
from ems.config.composed import experiment_schema
from ems.errors import EmsError
from ems.evalsets.fetch import fetch_evalset
from ems.evalsets.sets import data_files, read_bitext, read_sides
from ems.evalsets.whole import check_file

PAIRS = [("a\u2028b", "d"), ("c", "e")]
LINES = ['Er sagte: "Nein".', "Zwei\u2028drei", "vier"]
SPLITS = {
    "train": [("travel", 'Sie sagte: "Ja'), ("politics", "b")],
    "dev": [("science/technology", "c")],
    "test": [("health", "d\u2028e"), ("travel", "f")],
}


@pytest.fixture
def mirror(tmp_path):
    """One language of every set as it is published."""
    write_tatoeba(tmp_path / "mirror", "deu", PAIRS)
    write_flores(tmp_path / "mirror", "deu_Latn", LINES)
    write_sib(tmp_path / "mirror", "deu_Latn", SPLITS)
    return tmp_path / "mirror"


SETS = {  # name -> (code, sentences)
    "tatoeba": ("deu", 2),
    "flores200": ("deu_Latn", 3),
    "sib200": ("deu_Latn", 5),
}
ON_DISK = {
    "tatoeba": ["tatoeba.deu-eng.deu", "tatoeba.deu-eng.eng"],
    "flores200": ["devtest/deu_Latn.devtest"],
    "sib200": [f"deu_Latn/{name}.tsv" for name in ("train", "dev", "test")],
}
all_sets = pytest.mark.parametrize("name", SETS)
both = pytest.mark.parametrize("kind", ["directory", "host"])


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# --- fetching


@both
@all_sets
def test_fetched_files_are_the_sources_byte_for_byte_and_locked(mirror, tmp_path, kind, name):
    code, count = SETS[name]
    out = tmp_path / "out"
    with source_of(kind, mirror / name) as source:
        assert fetch_evalset(name, source, code, out) == count
        assert fetch_evalset(name, source, code, out) == count  # a second time is no change
        locks = {
            file: json.loads((out / f"{file}.lock.json").read_text()) for file in ON_DISK[name]
        }
    for file, lock in locks.items():
        content = (mirror / name / file).read_bytes()
        assert (out / file).read_bytes() == content
        assert (lock["url"], lock["bytes"]) == (f"{source}/{file}", len(content))
    expected = [*ON_DISK[name], *(f"{file}.lock.json" for file in ON_DISK[name])]
    assert files_below(out) == sorted([*expected, f"{code}.manifest.json"])
    manifest = json.loads((out / f"{code}.manifest.json").read_text())
    assert (manifest["unit"], manifest["read"], set(manifest["files"])) == (
        code,
        count,
        set(ON_DISK[name]),
    )
    check_file(out / f"{code}.manifest.json")


@all_sets
def test_files_that_are_here_without_their_manifest_are_checked_and_not_fetched_again(
    mirror, tmp_path, name
):
    """As an earlier version of the workflow left them, or a job that was killed at its end."""
    code, count = SETS[name]
    out, source = tmp_path / "out", str(mirror / name)
    fetch_evalset(name, source, code, out)
    manifest = out / f"{code}.manifest.json"
    first, before = manifest.read_bytes(), files_below(out)
    manifest.unlink()
    shutil.rmtree(mirror)
    assert fetch_evalset(name, source, code, out) == count
    assert (manifest.read_bytes(), files_below(out)) == (first, before)
    manifest.unlink()
    last = out / ON_DISK[name][-1]
    last.write_bytes(last.read_bytes()[:-2] + b"!\n")  # damaged: not what its lock says
    with pytest.raises(EmsError, match="no such file"):
        fetch_evalset(name, source, code, out)
    with pytest.raises(EmsError, match="no such file"):
        fetch_evalset(name, f"{source}2", code, out)


@all_sets
def test_generated_files_keep_no_lock_that_would_hold_them(mirror, tmp_path, name):
    code, _ = SETS[name]
    fetch_evalset(name, str(mirror / name), code, tmp_path / "out", locked=False)
    for file in ON_DISK[name]:
        text = (mirror / name / file).read_text(encoding="utf-8")
        write_lines(
            mirror / name / file, [*text.removesuffix("\n").split("\n")[:-1], "1\ttravel\tnew"]
        )
    fetch_evalset(name, str(mirror / name), code, tmp_path / "out", locked=False)
    assert all("new" in (tmp_path / "out" / file).read_text() for file in ON_DISK[name])


@both
@all_sets
def test_a_file_that_changed_at_its_source_is_an_error_that_names_the_lock(
    mirror, tmp_path, kind, name
):
    code, _ = SETS[name]
    last = ON_DISK[name][-1]
    with source_of(kind, mirror / name) as source:
        fetch_evalset(name, source, code, tmp_path / "out")
    before = (tmp_path / "out" / last).read_bytes()
    (mirror / name / last).write_bytes(before.removesuffix(b"\n") + b"!\n")
    with (
        source_of(kind, mirror / name) as source,
        pytest.raises(EmsError, match=rf"the source changed.*{last}\.lock\.json"),
    ):
        fetch_evalset(name, source, code, tmp_path / "out")
    assert (tmp_path / "out" / last).read_bytes() == before


@both
@all_sets
def test_a_missing_file_is_an_error_that_names_it_where_it_should_be(mirror, tmp_path, kind, name):
    code, _ = SETS[name]
    last = ON_DISK[name][-1]
    (mirror / name / last).unlink()
    with (
        source_of(kind, mirror / name) as source,
        pytest.raises(EmsError, match=f"{source}/{last}: "),
    ):
        fetch_evalset(name, source, code, tmp_path / "out")
    assert not (tmp_path / "out" / last).exists()


@all_sets
def test_a_web_page_never_becomes_a_benchmark(tmp_path, name):
    page = (200, {"Content-Type": "text/html; charset=utf-8"}, b"<html>\nSorry\n</html>\n")
    with (
        host({f"/{file}": page for file in ON_DISK[name]}) as address,
        pytest.raises(EmsError, match="web page"),
    ):
        fetch_evalset(name, address, SETS[name][0], tmp_path / "out")
    assert files_below(tmp_path / "out") == []


# --- malformed files

HEADER = b"index_id\tcategory\ttext\n"
MALFORMED = [
    ("flores200", b"a\n\nb\n", "line 2 is empty"),
    ("flores200", b"a\n \t\n", "line 2 is empty"),
    ("flores200", b"", "line 1 is empty"),
    ("flores200", b"a\nb\xe9\n", "not UTF-8 at byte 3"),
    ("sib200", b"", "line 1 is empty"),
    ("sib200", b"0\ttravel\ttext\n", "expected the columns index_id, category, text, found"),
    ("sib200", b"id,category,text\n", "expected the columns index_id, category, text"),
    ("sib200", HEADER + b"0\ttravel\ta\n1\ttravel\n", "line 3 has 2 columns, expected 3"),
    ("sib200", HEADER + b"0\ttravel\ta\tb\n", "line 2 has 4 columns, expected 3"),
    ("sib200", HEADER + b"0\ttravel\ta\n\n1\ttravel\tb\n", "line 3 is empty"),
    ("sib200", HEADER + b"0\ttravel\t\n", "line 2"),  # an example without its sentence
    ("sib200", HEADER + b"0\ttravel\t\xff\n", "not UTF-8 at byte 32"),
    ("tatoeba", b"a\n\n", "line 2 is empty"),
    ("tatoeba", b"\xff\n", "not UTF-8 at byte 0"),
]


@both
@pytest.mark.parametrize(("name", "content", "message"), MALFORMED)
def test_a_malformed_file_is_one_line_that_names_it_and_never_becomes_data(
    mirror, tmp_path, kind, name, content, message
):
    file = ON_DISK[name][-1]
    (mirror / name / file).write_bytes(content)
    with source_of(kind, mirror / name) as source, pytest.raises(EmsError) as told:
        fetch_evalset(name, source, SETS[name][0], tmp_path / "out")
    assert str(told.value).startswith(f"{source}/{file}: ")
    assert message in str(told.value)
    assert "\n" not in str(told.value)
    assert not [path for path in files_below(tmp_path / "out") if path.startswith(file)]


@pytest.mark.parametrize(("name", "content", "message"), MALFORMED)
def test_a_malformed_file_is_told_by_the_reader_too(mirror, name, content, message):
    path = mirror / name / ON_DISK[name][-1]
    path.write_bytes(content)
    reader = {"tatoeba": tatoeba, "flores200": flores200, "sib200": sib200}[name]
    with pytest.raises(EmsError) as told:
        reader.read_sides(mirror / name, SETS[name][0])
    assert str(told.value).startswith(f"{path}: ")
    assert message in str(told.value)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (b"a\nb\n", b"a\n", r"deu has 2 lines .*eng has 1"),
        (b"a\n\nb\n", b"a\nb\nc\n", r"deu: line 2 is empty"),
        (b"", b"a\n", r"deu: line 1 is empty"),
        (b"a\n", b"\xff\n", r"eng: not UTF-8 at byte 0"),
    ],
)
def test_unequal_or_broken_sides_of_tatoeba_are_an_error(tmp_path, first, second, message):
    source = sides(tmp_path / "in", first, second)
    with pytest.raises(EmsError, match=message):
        tatoeba.read_language(source, "deu")
    with pytest.raises(EmsError, match=message):
        fetch_evalset("tatoeba", str(source), "deu", tmp_path / "out")


def sides(folder, first, second):
    """The two files of a language of Tatoeba, byte for byte."""
    folder.mkdir(exist_ok=True)
    for path, content in zip(tatoeba.file_names("deu"), (first, second), strict=True):
        (folder / path).write_bytes(content)
    return folder


def test_unequal_sides_of_a_benchmark_do_not_stand_in_the_way_of_the_right_files(tmp_path):
    source = sides(tmp_path / "in", b"a\nb\n", b"a\n")
    with pytest.raises(EmsError, match="must be equal"):
        fetch_evalset("tatoeba", str(source), "deu", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    sides(source, b"a\nb\n", b"c\nd\n")
    assert fetch_evalset("tatoeba", str(source), "deu", tmp_path / "out") == 2


# --- reading


def test_tatoeba_is_read_line_by_line(tmp_path):
    source = sides(tmp_path, "a\u2028b\nc\r\n".encode(), b"d\ne")
    assert tatoeba.read_language(source, "deu") == (["a\u2028b", "c"], ["d", "e"])


def test_flores_is_read_line_by_line(mirror):
    assert flores200.read_language(mirror / "flores200", "deu_Latn") == LINES


def test_sib_is_read_with_its_topics_quotes_and_all_three_splits(mirror):
    path = mirror / "sib200" / "deu_Latn" / "train.tsv"
    assert sib200.read_split(path) == SPLITS["train"]
    everything = [text for examples in SPLITS.values() for _, text in examples]
    assert sib200.read_sides(mirror / "sib200", "deu_Latn") == [everything]


def test_every_set_of_the_schema_can_be_read_and_has_its_files(mirror, tmp_path):
    schema = experiment_schema(ROOT / "schemas")
    assert set(sets()) == set(schema["properties"]["evalsets"]["properties"])
    ntrex = write_opus(mirror, "NTREX", "v1", [{"de": "eins", "en": "one"}])
    names = ("tatoeba", "flores200", "sib200", "ntrex")  # others: test_evalsets_plan.py
    evalsets = {name: {"version": "v1", "languages": ["de"]} for name in names}
    experiment = Settings(tmp_path / "settings", MINIMAL | {"evalsets": evalsets}).load()
    expected = {
        "tatoeba": [["a\u2028b", "c"], ["d", "e"]],
        "flores200": [LINES],
        "sib200": [[text for examples in SPLITS.values() for _, text in examples]],
        "ntrex": [["eins"], ["one"]],
    }
    for name in names:
        folder = ntrex if name == "ntrex" else mirror / name
        (code,) = experiment.evalsets[name].languages
        assert list(read_sides(experiment, name, folder, code)) == expected[name]
        files = data_files(experiment, name, folder)
        assert files
        assert all(path.is_file() for path in files)
    assert read_bitext(experiment, "tatoeba", mirror / "tatoeba", "deu") == expected["tatoeba"]
    assert read_bitext(experiment, "ntrex", ntrex, "de") == expected["ntrex"]


def test_the_english_side_of_ntrex_is_the_second_whatever_the_order_of_the_codes(tmp_path):
    item = {"de": "eins", "fr": "un", "en": "one"}
    folder = write_opus(tmp_path, "NTREX", "v1", [item])
    evalsets = {"ntrex": {"version": "v1"}}
    decontaminate, benchmarks = {"against": []}, ["ntrex"]
    base = MINIMAL | {
        "evalsets": evalsets,
        "decontaminate": decontaminate,
        "benchmarks": benchmarks,
    }
    experiment = Settings(tmp_path / "settings", base).load()
    for code in ("de", "fr"):  # de-en, but en-fr
        assert read_bitext(experiment, "ntrex", folder, code) == [[item[code]], ["one"]]


# --- the real ones, where they lie beside the project


def test_the_real_flores_and_sib_have_the_published_sizes_and_share_their_sentences():
    needs(SHARED.is_dir(), "the real benchmarks do not lie beside the project")
    flores = SHARED / "flores200" / "flores200_dataset"
    for code in ("deu_Latn", "zho_Hans", "yor_Latn"):
        devtest = flores200.read_language(flores, code)
        assert len(devtest) == 1012
        examples = sib200.read_split(SHARED / "sib200" / code / "test.tsv")
        assert len(examples) == 204
        assert len({category for category, _ in examples}) == 7
        assert len(sib200.read_sides(SHARED / "sib200", code)[0]) == 1004
        known = {line.strip() for line in devtest}
        assert sum(text.strip() in known for _, text in examples) > 50
