"""Laws of local sources: what they lack is said before any job, once for all of them."""

import re
from pathlib import Path

import pytest
from conftest import copy_project
from made.corpora import DOCUMENTS
from made.experiments import REAL, TRAINING_FREE, Settings, edited

from ems.base.errors import EmsError
from ems.workflow.plan import plan, plans_jobs

DIVIDED = {"NTREX": {"documents": DOCUMENTS, "parts": {"train": 0.5, "test": 0.5}}}
SOURCES = {name: name for name in ("opus", "wikimatrix", "tatoeba", "flores200", "pawsx")}
VALUE = REAL | {
    "sources": SOURCES,
    "splits": DIVIDED,
    "corpora": [
        {"name": "Tatoeba", "version": "v2021-08-07"},
        {"name": "Mine", "version": "v1", "source": "mine"},
        {"name": "WikiMatrix", "version": "v1", "format": "mined", "threshold": 1.04},
    ],
    "systems": {"a": {}, "ngram": TRAINING_FREE},
    "validation": {"name": "NTREX", "version": "v1", "part": "train"},
    "evalsets": {
        "tatoeba": {"version": "v1"},
        "flores200": {"version": "v1"},
        "pawsx": {"version": "v1"},
        "ntrex": {"version": "v1", "part": "test"},
    },
}
FILES = {  # below a source: below the folder of data
    **{
        f"opus/{file}": f"opus/{file}"
        for pair in ("de-en", "en-ja")
        for file in (f"Tatoeba/v2021-08-07/moses/{pair}.txt.zip", f"NTREX/v1/moses/{pair}.txt.zip")
    },
    f"opus/NTREX/v1/{DOCUMENTS}": f"opus/NTREX/v1/{DOCUMENTS}",
    **{
        f"mine/Mine/v1/moses/{pair}.txt.zip": f"opus/Mine/v1/moses/{pair}.txt.zip"
        for pair in ("de-en", "en-ja")
    },
    **{
        f"wikimatrix/WikiMatrix/v1/{file}": f"opus/WikiMatrix/v1/mined/{file}"
        for file in ("WikiMatrix.de-en.tsv.gz", "WikiMatrix.en-ja.tsv.gz")
    },
    **{
        f"tatoeba/tatoeba.{code}-eng.{side}": f"evalsets/tatoeba/v1/{code}.manifest.json"
        for code in ("deu", "jpn")
        for side in (code, "eng")
    },
    **{
        f"flores200/devtest/{code}.devtest": f"evalsets/flores200/v1/{code}.manifest.json"
        for code in ("eng_Latn", "deu_Latn", "jpn_Jpan")
    },
    "pawsx/x-final.tar.gz": "evalsets/pawsx/v1/x-final.manifest.json",
}
KEYS = {"corpora.1.source": "mine"} | {f"sources.{name}": name for name in SOURCES}


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """An experiment with a source of every kind, in the working directory; no file is there."""
    monkeypatch.chdir(tmp_path)
    return Settings(tmp_path, VALUE)


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def missing(settings, value=None):
    """What is missing by key, of the lines that the plan has; the last one is advice."""
    if value:
        settings.write(value)
    *lines, advice = str(plan(root=settings.root).sources).split("\n")
    assert advice.startswith("sources: add the missing files to these directories") == bool(lines)
    return dict(line.split(": ", 1) for line in lines)


def test_every_directory_that_is_not_there_is_a_line_with_its_key_and_what_is_expected(settings):
    lines = missing(settings)
    assert set(lines) == set(KEYS)
    for key, folder in KEYS.items():
        assert lines[key].startswith(f"{folder} is not a directory; expected {folder}/")
    assert lines["sources.opus"].endswith(
        "expected opus/Tatoeba/v2021-08-07/moses/de-en.txt.zip, "
        "opus/Tatoeba/v2021-08-07/moses/en-ja.txt.zip, opus/NTREX/v1/moses/de-en.txt.zip and 2 more"
    )
    files = plan(root=settings.root).sources.files
    assert files == {Path("data") / place for place in FILES.values()}


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_missing_alone_unless_it_was_fetched(settings, name):
    touch(*(settings.root / other for other in FILES if other != name))
    (settings.root / name).parent.mkdir(parents=True, exist_ok=True)
    ((key, line),) = missing(settings).items()
    assert KEYS[key] == name.partition("/")[0]
    assert re.fullmatch(rf"(1 of \d+ files|file) not found: {re.escape(name)}", line)
    assert plan(root=settings.root).sources.files == {Path("data") / FILES[name]}
    touch(settings.root / "data" / FILES[name])
    assert missing(settings) == {}


def test_no_source_is_needed_where_everything_has_been_fetched(settings):
    touch(*(settings.root / "data" / place for place in FILES.values()))
    assert missing(settings) == {}


def test_addresses_generated_data_and_programs_are_not_asked(settings):
    value = edited(VALUE, "sources", dict.fromkeys(VALUE["sources"], "https://nowhere.invalid"))
    value = edited(value, "corpora.1.source", "embedded")
    assert missing(settings, edited(value, "sources.flores200", "embedded")) == {}
    (line,) = missing(settings, edited(value, "sources.pawsx", "file:///nowhere")).values()
    assert line == "/nowhere is not a directory; expected /nowhere/x-final.tar.gz"


def test_the_source_of_a_benchmark_among_the_corpora_is_that_of_the_corpus(settings):
    lines = missing(settings, edited(VALUE, "validation.source", "news"))
    assert "NTREX" not in lines["sources.opus"]
    assert lines["validation.source"].endswith(f"en-ja.txt.zip, news/NTREX/v1/{DOCUMENTS}")


def test_copies_of_evaluation_sets_that_lack_files_are_named_with_the_sources(settings):
    value = edited(VALUE, "evalsets.pawsx.path", "copy")
    settings.write(edited(value, "evalsets.tatoeba.path", "other"))
    with pytest.raises(EmsError) as error:
        plan(root=settings.root, jobs=True)
    keys = [line.partition(":")[0] for line in str(error.value).split("\n")]
    assert keys[:2] == ["evalsets.tatoeba.path", "evalsets.pawsx.path"]
    assert set(keys[2:]) == set(KEYS) - {"sources.pawsx", "sources.tatoeba"}


def test_where_snakemake_plans_no_job_no_source_is_asked():
    for word in ("--unlock", "--touch", "--report", "--lint", "--summary"):
        assert not plans_jobs(["snakemake", word])
    for words in (["-n", "all"], ["--dry-run"], ["all"], ["--profile", "slurm"]):
        assert plans_jobs(["snakemake", *words])


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with that experiment, of which only the sources of Tatoeba and Mine are there."""
    project = copy_project(tmp_path_factory.mktemp("sources") / "project")
    Settings(project.folder, VALUE)
    names = [name for name in FILES if name.startswith(("tatoeba/", "mine/"))]
    touch(*(project.folder / name for name in names))
    return project


LACKING = set(KEYS) - {"sources.tatoeba", "corpora.1.source"}


def test_ems_check_has_a_line_for_each_and_one_error(project):
    done = project.run("ems", "check", "--experiment", "mine", expect=1)
    *lines, last = [line.partition(" ")[2] for line in done.stderr.splitlines()[1:]]
    assert {line.partition(":")[0] for line in lines} == LACKING
    assert last.startswith("error: sources: add the missing files to these directories")


@pytest.mark.parametrize("words", [["-n", "--", "all"], ["--", "data"]])
def test_snakemake_names_all_of_them_before_any_job(project, words):
    output = project.snakemake("--config", "experiment=mine", *words, expect=1)
    for key in LACKING:
        assert output.count(f"{key}: {KEYS[key]} is not a directory; expected {KEYS[key]}/") == 1
    assert "localrule" not in output
    assert not (project.folder / "data").exists()


def test_what_needs_no_missing_source_is_planned_and_run_as_ever(project):
    of_all = ("--config", "experiment=mine")
    plan = project.snakemake(*of_all, "-n", "--", "results/mine/scores/ngram/tatoeba.json")
    assert "rule fetch_evalset:" in plan
    project.snakemake(*of_all, "--unlock")
