"""The whole workflow on a generated mirror: a divided corpus, eight benchmarks, unseen languages.

The mirror and the data folder have nasty names. The project's own table of languages is cut to
five, so that "all" languages of a benchmark are few.
"""

import csv
import json
import os
import re

import pytest
import yaml
from conftest import copy_project, planned
from made.corpora import (
    cut_languages,
    translations,
    write_flores,
    write_lines,
    write_opus,
    write_sib,
    write_tatoeba,
)
from made.experiments import NASTY, quoted
from made.scores import counts

from ems.bench.scores import read_score_file
from ems.benchmarks.xsimpp.data import AUGMENTED, KINDS
from ems.corpora.split import part_of_line

pytestmark = pytest.mark.slow
TATOEBA = {"deu": "de", "fra": "fr", "nld": "nl", "swh": "sw", "ang": "ang", "yid": "yid"}
FLORES = {"en": "eng", "de": "deu", "fr": "fra", "nl": "nld", "sw": "swh"}  # + _Latn
PARTS = {"train": 0.5, "validation": 0.2, "test": 0.3}
MINI = """
description: a miniature of small62
seed: 1
languages: [en, de, fr, sw]
sources: SOURCES
splits: {NTREX: {documents: DOCUMENT_IDS.tsv, parts: {train: 0.5, validation: 0.2, test: 0.3}}}
corpora:
  - {name: Tatoeba, version: v2021-08-07, fallback: true} # of sw only
  - {name: bible-uedin, version: v1, without: [sw]}
  - {name: NTREX, version: v1, without: [sw], part: train}
validation: {name: NTREX, version: v1, part: validation}
evalsets:
  tatoeba: {version: v1, languages: all}
  flores200: {version: v1, languages: all}
  sib200: {version: v1, languages: all}
  ntrex: {version: v1, languages: all, part: test}
  xsimpp: {version: v1, path: XSIMPP}
decontaminate: {against: [tatoeba, flores200, sib200, ntrex]}
segmenters: {default: none}
vocabulary: {size: 300, sample_lines: 2000, character_coverage: 1.0}
model: {layers: 1, width: 16, heads: 2, feed_forward: 32, max_tokens: 40}
objectives: {head: {language_width: 4}, contrastive: {width: 8}}
train: {steps: 20, batch_pairs: 8, validate_every: 10, threads: 1, device: cpu}
systems: {ems: {}, aside: {train: {seed: 2}}, char-ngram: {kind: char-ngram}}
benchmarks: [tatoeba, ntrex, flores200, xsim, xsimpp, wordorder]
tables: {systems: [ems, char-ngram], printed: [EMS]}
"""
SOURCES = {name: f"{NASTY}/{name}" for name in ("opus", "tatoeba", "flores200", "sib200")}
XSIMPP = f"{NASTY}/xsimpp"
MINI = MINI.replace("SOURCES", json.dumps(SOURCES)).replace("XSIMPP", json.dumps(XSIMPP))
MINI = yaml.safe_load(MINI)
SHOWN = ["ems", "char-ngram"]
PAPERS = [f"paper.{at // 5}" for at in range(100)]


def sentences(name, count):
    """Return translations that end in a name, so that no two corpora share one by chance."""
    codes = ["en", *TATOEBA.values()]
    items = translations(count, codes, seed=name, least=3)
    return [{code: f"{text} {name}" for code, text in item.items()} for item in items]


def write_mirror(mirror):
    """Write corpora and benchmarks, return the latter; the Bible has a sentence of each."""
    sets = {name: sentences(name, 20) for name in ("tatoeba", "flores", "sib")}
    news = sentences("news", len(PAPERS))
    write_opus(mirror, "NTREX", "v1", [_of(item, FLORES) for item in news], PAPERS)
    leaks = [sets["tatoeba"][0], sets["flores"][1], sets["sib"][2], news[-1]]
    leaks += [item for item in news if item is not news[-1]]  # all of the news, in one language
    bible = [_of(item, ("en", "de", "fr", "nl")) for item in sentences("bible", 120) + leaks]
    write_opus(mirror, "bible-uedin", "v1", bible)
    write_opus(mirror, "Tatoeba", "v2021-08-07", [_of(i, FLORES) for i in sentences("plain", 80)])
    for code, language in TATOEBA.items():
        write_tatoeba(mirror, code, [(item[language], item["en"]) for item in sets["tatoeba"]])
    for language, code in FLORES.items():
        write_flores(mirror, f"{code}_Latn", [item[language] for item in sets["flores"]])
        examples = [("travel", item[language]) for item in sets["sib"]]
        parts = {"train": examples[:10], "dev": examples[10:15], "test": examples[15:]}
        write_sib(mirror, f"{code}_Latn", parts)
    made = {f"not {item['en']}": item["en"] for item in sets["flores"]}
    write_lines(mirror / "xsimpp" / AUGMENTED, made)
    kinds = {text: {"errtype": "negation", "src": source} for text, source in made.items()}
    (mirror / "xsimpp" / KINDS).write_text(json.dumps(kinds))
    part = part_of_line(PAPERS, PARTS)
    tested = [item for item, name in zip(news, part, strict=True) if name == "test"]
    return {**sets, "news": tested}


def _of(item, codes):
    return {code: item[code] for code in codes}


def mini_project(folder, value=MINI):
    """Make a project with the experiment `mini`, in which nothing has run."""
    project = copy_project(folder)
    project.select("mini", value)
    project.edit("config.yaml", "data: data #", f"data: {quoted(NASTY[1:])} #")
    cut_languages(project, FLORES, TATOEBA)  # two codes of Tatoeba are in no table at all
    return project


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A project in which `snakemake all` has run `mini`; tests must leave its results alone.

    `output`: the commands of its jobs.
    """
    project = mini_project(tmp_path_factory.mktemp("mini"))
    project.sets = write_mirror(project.folder / NASTY)
    project.output = project.snakemake("-p", "all")
    return project


def columns(path):
    return set(next(csv.reader(path.read_text().splitlines())))


def test_all_makes_the_tables_of_seen_and_unseen_languages_the_figures_and_the_costs(run):
    results = run.folder / "results"
    tables = {path.stem: path for path in (results / "tables").glob("*.csv")}
    names = {"tatoeba", "tatoeba_unseen", "ntrex", "flores", "xsim", "wordorder"}
    assert set(tables) == names | {"corpora", "decontamination", "filters", "vocabulary", "models"}
    assert columns(tables["tatoeba"]) >= {"de", "fr", "sw"}
    assert columns(tables["tatoeba_unseen"]) == {"Model", "nld", "ang", "yid", "Avg."}
    assert columns(tables["ntrex"]) == {"Model", *(set(FLORES) - {"en"}), "Avg."}
    for name, expected in (
        ("tatoeba", ["ems", "char-ngram", "EMS (printed)"]),
        ("xsim", [f"{each}: {name}" for each in ("xsim", "xsim++") for name in SHOWN]),
    ):
        rows = [row[0] for row in csv.reader(tables[name].read_text().splitlines())]
        assert rows[1:] == expected
    figures = {path.stem for path in (results / "figures").glob("*.svg")}
    assert figures == {"cleaning", "tatoeba", "flores", "pairs", "learning", "learning_languages"}
    summary = {path.name for path in (results / "mini/costs/summary").glob("[!.]*")}
    drawn = {f"learning.{suffix}" for suffix in ("svg", "png", "pdf")}
    assert summary == {"costs.tex", "costs.csv", "costs.md", *drawn}


def test_a_system_in_no_table_is_trained_only_on_request(run):
    assert not (run.folder / "results/mini/models/aside").exists()
    assert "rule train:" in run.snakemake("-n", "results/mini/scores/aside/ntrex.json")


def test_nasty_names_run_nothing_and_a_second_run_has_nothing_to_do(run):
    assert (run.folder / NASTY[1:] / "opus/NTREX/v1/DOCUMENT_IDS.tsv").is_file()
    assert list(run.folder.rglob("pwned")) == []
    assert "Nothing to be done" in run.snakemake("all")


def test_no_sentence_of_a_benchmark_is_in_training_or_validation_text(run):
    held_out = {text for items in run.sets.values() for item in items for text in item.values()}
    cleaned = sorted((run.folder / "results/mini/text/clean").rglob("*.tsv"))
    assert len(cleaned) == 1 + 2 + 2 + 3
    for path in cleaned:
        sides = [side for line in path.read_text().splitlines() for side in line.split("\t")]
        assert sides
        assert not held_out & set(sides), path
    report = json.loads((run.folder / "results/mini/reports/decontamination.json").read_text())
    of_bible = [entry for entry in report["corpora"] if entry["corpus"] == "bible-uedin"]
    assert len(of_bible) == 2
    for entry in of_bible:
        pairs = {name: counts["pairs"] for name, counts in entry["by_benchmark"].items()}
        news = len(run.sets["news"])
        assert pairs == {"tatoeba": 1, "flores200": 1, "sib200": 1, "ntrex": news}
        assert entry["removed"]["evaluation"] == news + 3


def test_score_files_name_unseen_languages_and_the_part_of_the_benchmark(run):
    folder = run.folder / "results/mini/scores/ems"
    tatoeba, ntrex = (read_score_file(folder / f"{name}.json") for name in ("tatoeba", "ntrex"))
    seen = {"deu": "de", "fra": "fr", "swh": "sw"}
    assert tatoeba.languages == {code: seen.get(code, "und") for code in TATOEBA}
    assert set(tatoeba.labelled()) == set(TATOEBA)
    assert ntrex.version == "v1+test"
    assert set(counts(ntrex).values()) == {len(run.sets["news"])}


# --- benchmarks that read another evaluation set, two, or none


def test_each_benchmark_gets_the_folders_of_its_evaluation_sets(run):
    commands = re.findall(r"--benchmark (\w+) .*?--evalset(.*?) --out ", run.output)
    names = {benchmark: re.findall(r"(\w+)=", folders) for benchmark, folders in commands}
    own = {"flores200": ["flores200"], "xsim": ["flores200"], "wordorder": []}
    assert names.items() >= (own | {"xsimpp": ["flores200", "xsimpp"]}).items()
    folder = run.folder / "results/mini/scores/char-ngram"
    scores = {path.stem: read_score_file(path) for path in folder.glob("*.json")}
    assert set(scores) == set(MINI["benchmarks"])
    assert len(scores["flores200"].labelled()) == len(MINI["languages"])
    assert scores["xsimpp"].data_sha256 != scores["xsim"].data_sha256
    assert scores["wordorder"].rows[0].value > 0.5  # nearly the same words


def test_another_sentence_of_xsimpp_runs_this_benchmark_alone(run):
    path = run.folder / XSIMPP / AUGMENTED
    before, times = path.read_text(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_text(before + "one more\n")
    try:
        output = run.snakemake("-n", "all")
    finally:
        path.write_text(before)
        os.utime(path, ns=times)
    assert "scores/char-ngram/xsimpp.json" in output
    for name in ("xsim", "flores200", "wordorder"):
        assert f"output: results/mini/scores/char-ngram/{name}.json" not in output


@pytest.mark.parametrize(
    ("benchmark", "folders", "status", "message"),
    [
        ("xsim", ["sets"], 2, "--evalset: expected NAME=FOLDER, found 'sets'"),
        ("xsimpp", ["flores200=configs"], 1, "xsimpp: the folder of xsimpp is not given"),
        ("xsim", [], 1, "xsim: the folder of flores200 is not given; add --evalset"),
    ],
)
def test_bench_by_hand_needs_the_folder_of_each_set(run, benchmark, folders, status, message):
    words = ("ems", "bench", "--experiment", "mini", "--system", "char-ngram", "--out", "x.json")
    words += ("--model", "results/mini/models/char-ngram")
    done = run.run(*words, "--benchmark", benchmark, "--evalset", *folders, expect=status)
    assert message in done.stderr.splitlines()[-1]
    assert not (run.folder / "x.json").exists()


# --- plans: what would run


def test_ntrex_may_be_the_only_benchmark(tmp_path):
    value = {"decontaminate": {"against": ["ntrex"]}, "benchmarks": ["ntrex"]}
    value["evalsets"] = {"ntrex": MINI["evalsets"]["ntrex"]}
    project = mini_project(tmp_path, MINI | value)
    write_mirror(project.folder / NASTY)
    jobs = planned(project.snakemake("-n", "results/tables/ntrex.tex"))
    assert jobs["table"] == 1
    assert "fetch_evalset" not in jobs
