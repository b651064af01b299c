"""The workflow's jobs for benchmarks that are of another set, of two, or of none: they run, and
their tables and the map come out."""

import csv
import json

import pytest
import yaml
from conftest import copy_project
from made.corpora import translations, write_flores, write_lines
from made.experiments import MINIMAL

from ems.bench.scores import read_score_file
from ems.benchmarks.xsimpp.data import AUGMENTED, KINDS
from ems.text.evalkeys import read_eval_keys

FLORES = {"en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn"}
OWN = MINIMAL | yaml.safe_load("""
evalsets:
  flores200: {version: v1, path: sets/flores200}
  xsimpp: {version: v1, path: sets/xsimpp}
decontaminate: {against: []}
systems: {char-ngram: {kind: char-ngram, ngrams: {idf: false}}}
benchmarks: [flores200, xsim, xsimpp, wordorder]
tables: {printed: [EMS]}
""")
TABLES = [f"results/tables/{name}.tex" for name in ("flores", "xsim", "wordorder")]
FIGURE = "results/figures/flores.svg"
KEYS = "results/own/text/evalkeys.tsv"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose experiment has these benchmarks and a system that needs no training, in which
    their tables and the map have been made; `output` is what Snakemake said.
    """
    project = copy_project(tmp_path_factory.mktemp("flores"))
    folder = project.folder
    items = list(translations(12, list(FLORES), seed="flores", least=4))
    for language, code in FLORES.items():
        write_flores(folder / "sets", code, [item[language] for item in items])
    made = {f"not {item['en']}": item["en"] for item in items}
    write_lines(folder / "sets/xsimpp" / AUGMENTED, made)
    kinds = {text: {"errtype": "negation", "src": source} for text, source in made.items()}
    (folder / "sets/xsimpp" / KINDS).write_text(json.dumps(kinds))
    project.select("own", OWN)
    project.output = project.snakemake("-p", *TABLES, FIGURE, KEYS)
    return project


def test_each_job_gets_the_folders_of_its_sets_and_all_tables_and_the_map_are_made(project):
    flores, xsimpp = "flores200=sets/flores200", "xsimpp=sets/xsimpp"
    for benchmark, folders in (
        ("flores200", flores),
        ("xsim", flores),
        ("xsimpp", f"{flores} {xsimpp}"),
        ("wordorder", ""),
    ):
        assert f"--benchmark {benchmark}  --evalset {folders} --out " in project.output
    folder = project.folder / "results/own/scores/char-ngram"
    scores = {path.stem: read_score_file(path) for path in folder.iterdir()}
    assert set(scores) == {"flores200", "xsim", "xsimpp", "wordorder"}
    assert len(scores["flores200"].labelled()) == 3
    assert scores["xsimpp"].data_sha256 != scores["xsim"].data_sha256
    assert scores["wordorder"].rows[0].value > 0.5  # nearly the same words
    table = (project.folder / "results/tables/xsim.csv").read_text().splitlines()
    assert [row[0] for row in csv.reader(table)] == [
        "Model",
        "xsim: char-ngram",
        "xsim++: char-ngram",
    ]
    assert (project.folder / FIGURE).stat().st_size > 1000
    assert "Nothing to be done" in project.snakemake(*TABLES, FIGURE)


def test_decontamination_against_no_set_has_no_keys(project):
    assert read_eval_keys([project.folder / KEYS]) == {}


def test_all_makes_these_tables_and_the_map_too(project):
    for pair in ("de-en", "en-fr"):  # the report of what cleaning kept is a table too
        write_lines(project.folder / f"nowhere/Toy/v1/moses/{pair}.txt.zip", [])
    output = project.snakemake("-n", "--forceall", "all")
    for path in (*TABLES, FIGURE):
        assert path in output


def test_another_made_sentence_runs_xsimpp_again_and_nothing_else(project):
    """A change of the sets that `xsim` does not read."""
    path = project.folder / "sets/xsimpp" / AUGMENTED
    path.write_text(path.read_text() + "one more\n")
    output = project.snakemake("-n", *TABLES)
    assert "scores/char-ngram/xsimpp.json" in output
    for name in ("xsim", "flores200", "wordorder"):
        assert f"output: results/own/scores/char-ngram/{name}.json" not in output


def test_a_job_by_hand_without_the_name_of_a_set_is_told_how_to_name_it(project):
    words = ("ems", "bench", "--experiment", "own", "--system", "char-ngram", "--out", "x.json")
    for benchmark, folders, code, message in (
        ("xsim", ["sets/flores200"], 2, "--evalset: expected NAME=FOLDER, found 'sets/flores200'"),
        (
            "xsimpp",
            ["flores200=sets/flores200"],
            1,
            "xsimpp: the folder of xsimpp is not given",
        ),
        ("xsim", [], 1, "xsim: the folder of flores200 is not given; add --evalset"),
    ):
        done = project.run(*words, "--benchmark", benchmark, "--evalset", *folders, expect=code)
        assert message in done.stderr.splitlines()[-1]
        assert not (project.folder / "x.json").exists()
