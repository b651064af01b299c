"""Laws of own pairs: `ems init --files`, the benchmark held out of them, and `ems quickstart`."""

import gzip
import json
import re
import sys
from contextlib import chdir
from xml.sax.saxutils import escape

import pytest
from conftest import ROOT, copy_project
from made import bench
from made.cli import Cli
from made.corpora import translations, write_lines
from made.experiments import MINIMAL, Settings

from ems.base.errors import EmsError
from ems.bench.scores import read_score_file
from ems.benchmarks.own.data import read_language, read_pairs, read_sides
from ems.config.load import load_experiment, load_site
from ems.workflow.own_pairs import CLEAN, read_files

SWAPPED = [
    "Jeg vil gerne have en kop kaffe, hvis du har mere.\tI would like some coffee, please.",
    "Hvor mange børn har I, og hvad hedder de alle sammen?\tHow many children do you have there?",
    "Vi skal huske at købe brød og smør på vejen hjem.\tWe must remember to buy bread and butter.",
    "Det regnede hele natten, og vejene er våde.\tIt rained all night and the roads are wet.",
] * 30
PAIRS = list(translations(1200, ["en", "da", "sv"], seed="own pairs", least=3, most=9))


@pytest.fixture
def ems(tmp_path):
    return Cli(tmp_path)


def write_pairs(path, codes="en da", count=600):
    items = [[item[code] for code in codes.split()] for item in PAIRS[:count]]
    if path.suffix == ".tmx":
        variant = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'.format
        units = (map(variant, codes.upper().split(), map(escape, row)) for row in items)
        rows = ["<tmx><body>", *(f"<tu>{''.join(unit)}</tu>" for unit in units), "</body></tmx>"]
    elif path.suffix == ".jsonl":
        rows = (json.dumps(dict(zip(codes.split(), row, strict=True))) for row in items)
    else:
        rows = map("\t".join, items)
    return write_lines(path, rows)


def loaded(folder, name="mine"):
    return load_experiment(name, load_site(folder / "config.yaml"), folder / "configs")


# --- the files


def test_each_form_of_files_gives_the_same_pairs(tmp_path):
    write_pairs(tmp_path / "pairs.tsv")
    write_pairs(tmp_path / "pairs.jsonl")
    write_pairs(tmp_path / "pairs.tmx")
    write_pairs(tmp_path / "turned.da-en.tsv", "da en")
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress((tmp_path / "pairs.tsv").read_bytes()))
    for code in ("en", "da"):
        write_lines(tmp_path / f"text.{code}", [item[code] for item in PAIRS[:600]])
    forms = ["pairs.tsv"], ["pairs.tsv.gz"], ["pairs.jsonl"], ["text.da", "text.en"]
    forms = [*forms, ["pairs.tmx"], ["en-da=pairs.tsv"], ["turned.da-en.tsv"]]
    with chdir(tmp_path):
        files = [read_files(words, ["en", "da"])[0] for words in forms]
    assert {tuple(file.lines()) for file in files} == {tuple(files[0].lines())}
    assert {file.pairs for file in files} == {len({tuple(item.items()) for item in PAIRS[:600]})}
    assert [file.key for file in files] == ["en-da"] * 6 + ["da-en"]


def test_swapped_columns_are_an_error_that_shows_a_row(tmp_path):
    rows = write_lines(tmp_path / "rows.tsv", SWAPPED)
    with pytest.raises(EmsError, match=r"100 % of its rows are wrong: .* sides swapped, like line"):
        read_files([str(rows)], ["en", "da"])


def test_several_files_are_corpora_each_with_its_languages(ems, tmp_path):
    write_pairs(tmp_path / "pairs.tsv")
    for code in ("da", "en", "sv"):
        write_lines(tmp_path / f"text.{code}", [item[code] for item in PAIRS])
    words = ["en-da=pairs.tsv", "text.da", "text.en", "text.sv"]
    ems.run("init", "--languages", "da,sv,en", "--files", *words)
    experiment = loaded(tmp_path)
    pairs = {corpus.name: corpus.pairs for corpus in experiment.corpora}
    assert pairs == {"Mine": ("da-en",), "Mine2": ("da-en",), "Mine3": ("en-sv",)}
    message = ems.error("init", "--languages", "da,sv,en", "--files", "pairs.tsv")
    assert "name them in the order of the columns: da-sv=pairs.tsv" in message


# --- the experiment


def test_the_experiment_has_three_parts_and_needs_no_network(ems, tmp_path):
    write_pairs(tmp_path / "my pairs.tsv", count=1200)
    out = ems.run("init", "--languages", "en,da", "--files", "my pairs.tsv")[0]
    assert "as en-da, of which 1" in out
    assert "OPUS" not in out
    experiment = loaded(tmp_path)
    assert experiment.clean == CLEAN  # so the pairs are counted as they will be cleaned
    assert experiment.benchmarks == ("own",)
    assert [(c.label, c.custom) for c in experiment.corpora] == [("Mine+train", True)]
    assert [corpus.label for corpus in experiment.validation] == ["Mine+validation"]
    assert experiment.splits["Mine"].sentences == "en"
    assert experiment.decontaminate.against == ["own"]
    assert experiment.decontaminate.validation
    with chdir(tmp_path):
        held_out = read_pairs(tmp_path / "configs/mine", ["da", "en"])["da", "en"]
    texts = {(item["da"], item["en"]) for item in PAIRS}
    assert set(zip(*held_out, strict=True)) <= texts
    assert len(held_out[0]) == len({*held_out[0]}) == len({*held_out[1]}) == len(texts) // 10
    assert "experiment mine is fine" in ems.run("check", "--experiment", "mine")[1]


def test_the_same_again_changes_nothing_and_other_text_is_refused(ems, tmp_path):
    write_pairs(tmp_path / "pairs.tsv")
    words = ("init", "--languages", "en,da", "--files", "pairs.tsv")
    ems.run(*words)
    files = {path: path.read_bytes() for path in (tmp_path / "configs").rglob("*.*")}
    ems.run(*words)
    assert files == {path: path.read_bytes() for path in (tmp_path / "configs").rglob("*.*")}
    write_pairs(tmp_path / "pairs.tsv", count=700)
    assert "configs/mine.yaml: file already exists" in ems.error(*words)
    (tmp_path / "configs/mine.yaml").unlink()
    assert "configs/mine/pairs.tsv: file already exists" in ems.error(*words)


def test_text_of_opus_is_added_with_a_budget_alone(ems, tmp_path):
    write_pairs(tmp_path / "pairs.tsv")
    words = ("init", "--languages", "en,da", "--files", "pairs.tsv", "--budget", "20k")
    assert "20,000 sentence pairs" in ems.run(*words)[0]
    experiment = loaded(tmp_path)
    assert experiment.benchmarks[:2] == ("own", "tatoeba")
    assert len({corpus.source for corpus in experiment.corpora}) == 2
    more = ("init", "--languages", "en,da,sv", "--files", "en-da=pairs.tsv")
    assert "no pair of Swedish (sv)" in ems.error(*more, "--out", "configs/x.yaml")


def test_no_benchmark_is_an_experiment(tmp_path):
    none = Settings(tmp_path, MINIMAL).changed(
        benchmarks=[], evalsets={}, decontaminate={"against": []}
    )
    assert none.benchmarks == ()


# --- the benchmark


def test_p_at_1_of_both_directions_by_hand(tmp_path):
    rows = [("en", "da", "a", "A"), ("en", "da", "b", "B"), ("da", "sv", "A", "x")]
    write_lines(tmp_path / "own/pairs.tsv", map("\t".join, rows))
    angles = {"a": 0, "A": 10, "b": 90, "B": 20, "x": 5}  # degrees; B is nearest to neither
    changes = {
        "languages": ["en", "da"],
        "corpora": [{"name": "T", "version": "v1", "source": "t", "pairs": ["da-en"]}],
        "evalsets": {"own": {"version": "v1", "path": str(tmp_path / "own")}},
        "benchmarks": ["own"],
        "decontaminate": {"against": ["own"]},
    }
    file = bench.scored(tmp_path, "own", tmp_path / "own", bench.Angles(angles), **changes)
    assert {row.direction: row.value for row in file.rows} == {"en-da": 100, "da-en": 50}
    assert read_language(tmp_path / "own", "da") == [["A", "B"], ["a", "b"]]
    assert read_sides(tmp_path / "own", "da") == [["A"], ["A", "B"]]


# --- the whole way


@pytest.mark.slow
def test_quickstart_trains_a_model_that_three_lines_use(tmp_path):
    project = copy_project(tmp_path / "project")
    write_pairs(project.folder / "pairs.tsv", count=1200)
    example = "ems quickstart pairs.tsv --languages en,da"
    for page in ("README.md", "docs/start.md"):
        assert f"\n    {example}\n" in (ROOT / page).read_text()
    words = (*example.split(), "--out", "exports/toy")
    out = project.run(*words).stdout
    scores = [
        read_score_file(project.folder / f"results/toy/scores/{system}/own.json").means()[0].value
        for system in ("char-ngram", "ems-plus")
    ]
    assert re.search(rf"mean +{scores[0]:.1f} +{scores[1]:.1f}\n", out)
    assert scores[1] > scores[0] + 20
    code = "\n".join(line.strip() for line in out.splitlines()[-3:])
    assert re.match(r"\[\[[01]?\.\d+\]\]", project.run(sys.executable, "-c", code).stdout)
    again = project.run(*words)
    assert "toy: all exports" not in again.stderr.partition("messages of")[2]  # nothing to do
    assert again.stdout.splitlines()[1:] == out.splitlines()[1:]
    table = (project.folder / "results/tables/own.md").read_text()
    assert f"{scores[1]:.1f}" in table
