"""Laws of `ems corpora list`: every count is a known one or a `?`, and they add up."""

import csv
import io
import json
import subprocess
import sys

import pytest
from conftest import ROOT
from experiments_made import REAL, Settings

from ems.config import load_experiment, load_site
from ems.config.yaml12 import load_yaml
from ems.corpora.catalogue import catalogue
from ems.downloads import as_csv, as_text, listing
from ems.languages.opus import opus_files
from ems.tables.printed import load_pairs

TED = {"name": "TED2020", "version": "v1"}
WIKI = {"name": "WikiMatrix", "version": "v1"}
BASE = REAL | {"languages": ["en", "de", "zh", "xq"], "validation": None}
BASE["languages"] = ["en", "de", "zh", {"code": "xq"}]


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, BASE)


def listed(project, *corpora, **more):
    return listing(project.load(BASE | {"corpora": list(corpora)} | more))


def shipped(name):
    site = load_site(ROOT / "config.yaml", ROOT / "schemas", {"experiment": name})
    return load_experiment(name, site, ROOT / "configs", ROOT / "schemas")


def test_a_corpus_has_the_pairs_files_and_kilobytes_of_the_table(project):
    found = listed(project, TED)["corpora"][0]
    files = opus_files("TED2020", "v1")
    names = ["de-en", "en-zh_cn", "en-zh_tw", "en-zh"]
    assert found["languages"] == ["de", "zh"]
    assert (found["pairs"], found["files"]) == (2, 4)
    assert found["sentence_pairs"] == found["used"] == sum(files[name].pairs for name in names)
    assert found["kilobytes"] == sum(files[name].kilobytes for name in names)
    assert found["licence"] == catalogue()["TED2020"].licence


def test_a_cap_limits_each_file_of_what_is_used_and_not_what_is_downloaded(project):
    whole, capped = (listed(project, TED | more) for more in ({}, {"max_pairs": {"zh": 9_000}}))
    assert capped["total"]["sentence_pairs"] == whole["total"]["sentence_pairs"]
    assert capped["total"]["kilobytes"] == whole["total"]["kilobytes"]
    german = opus_files("TED2020", "v1")["de-en"].pairs
    least = min(9_000, opus_files("TED2020", "v1")["en-zh"].pairs)
    assert capped["total"]["used"] == german + 2 * 9_000 + least


def test_what_is_not_in_the_table_is_not_known_and_never_nothing(project):
    own = {"name": "Mine", "version": "1", "source": "x", "languages": ["de"]}
    found = listed(project, TED, own)
    assert found["corpora"][1]["used"] is None
    assert found["corpora"][1]["licence"] == "yours"
    assert (found["total"]["unknown"], found["total"]["unknown_kilobytes"]) == (1, 1)
    text = as_text(project.load())
    assert [line.split()[-3:-1] for line in text.splitlines() if "Mine" in line] == [["?", "?"]]
    assert f"{found['total']['used']:,}?" in text
    assert "? of 1 language pairs of a corpus the count is not known" in text
    german = next(row for row in found["languages"] if row["language"] == "de")
    assert (german["unknown"], german["at_most"], german["difference"]) == (1, None, None)


def test_of_mined_pairs_the_count_lies_between_none_and_that_of_opus(project):
    mined = {**WIKI, "format": "mined", "threshold": 1.075, "languages": ["de"]}
    row = listed(project, mined)["languages"][0]
    count = opus_files("WikiMatrix", "v1")["de-en"].pairs
    printed = load_pairs()["de"].ems
    assert (row["used"], row["at_most"]) == (None, count)
    assert row["difference"] == count - printed < 0


def test_the_parts_of_a_corpus_share_its_files(project):
    splits = {"WikiMatrix": {"first": {"validation": 1000}, "rest": "train"}}
    wiki = {**WIKI, "languages": ["de"]}
    parts = {"validation": wiki | {"part": "validation"}, "splits": splits}
    found = listed(project, wiki | {"part": "train"}, **parts)
    lines = opus_files("WikiMatrix", "v1")["de-en"].pairs
    assert [row["used"] for row in found["corpora"]] == [lines - 1000, 1000]
    assert [row["files"] for row in found["corpora"]] == [1, 0]
    assert found["corpora"][1]["kilobytes"] == 0
    assert found["total"]["sentence_pairs"] == lines
    assert found["total"]["train"]["used"] == lines - 1000
    assert [row["used"] for row in found["languages"]] == [lines - 1000]


def test_the_csv_has_a_row_for_each_corpus_and_pair_that_add_up_to_the_list(project):
    experiment = project.load(BASE | {"corpora": [TED, {"name": "UNPC", "version": "v1.0"}]})
    rows = list(csv.DictReader(io.StringIO(as_csv(experiment))))
    assert [(row["corpus"], row["language"]) for row in rows] == [
        ("TED2020", "de"),
        ("TED2020", "zh"),
        ("UNPC", "zh"),
    ]
    assert rows[1]["files"] == "en-zh_cn en-zh_tw en-zh"
    total = listing(experiment)["total"]
    for column in ("sentence_pairs", "used", "kilobytes"):
        assert sum(int(row[column]) for row in rows) == total[column]


def test_the_columns_of_the_text_stand_under_each_other(project):
    text = as_text(project.load(BASE | {"corpora": [TED]}))
    head, *rows = text.split("\n\n")[1].splitlines()
    for row in rows:
        end = head.index("used") + len("used")
        assert row[end - 1].isdigit()
        assert row[end : end + 1].strip() == ""


def test_the_papers_experiment_has_all_corpora_and_comes_near_to_table_one():
    found = listing(shipped("ems62"))
    assert [row["corpus"] for row in found["corpora"]] == [
        "Europarl",
        "GlobalVoices",
        "News-Commentary",
        "OpenSubtitles",
        "TED2020",
        "UNPC",
        "WikiMatrix+train",
        "Tatoeba",
        "WikiMatrix+validation",
    ]
    rows = {row["language"]: row for row in found["languages"]}
    assert set(rows) == set(load_pairs())
    train = found["total"]["train"]
    assert train["used"] < found["table_1_total"] < train["at_most"]
    for language in ("eu", "ka", "kk", "hy", "mn", "et", "lv"):  # no WikiMatrix to speak of
        row = rows[language]
        assert abs(row["used"] - row["table_1"]) < 0.05 * row["table_1"], row


def test_a_set_that_is_drawn_of_a_corpus_needs_its_whole_files_and_is_told_apart(project):
    sets = BASE["evalsets"] | {"paracrawl": {"version": "v5"}, "europarlxsr": {"version": "v7"}}
    found = listed(project, TED, evalsets=sets)
    known = opus_files("ParaCrawl", "v5")["de-en"]
    assert found["evalsets"] == [
        {"evalset": "paracrawl", "corpus": "ParaCrawl", "version": "v5", "files": 1}
        | {"lines": known.pairs, "kilobytes": known.kilobytes},
        {"evalset": "europarlxsr", "corpus": "Europarl", "version": "v7", "files": 1}
        | {"lines": None, "kilobytes": None},  # not a release of the table
    ]
    assert found["total"] == listed(project, TED)["total"]
    experiment = project.load(BASE | {"corpora": [TED], "evalsets": sets})
    rows = [line.split() for line in as_text(experiment).splitlines()]
    assert ["paracrawl", "ParaCrawl", "v5", "1", f"{known.pairs:,}", "4,709"] in rows
    assert ["europarlxsr", "Europarl", "v7", "1", "?", "?"] in rows


def test_the_papers_experiment_says_how_much_its_retrieval_downloads():
    (paracrawl,) = listing(shipped("ems62"))["evalsets"]
    assert (paracrawl["evalset"], paracrawl["files"]) == ("paracrawl", 21)
    text = (ROOT / "configs/ems62.yaml").read_text()
    assert f"{paracrawl['kilobytes'] / 1e6:.1f} GB" in text


def test_starter_says_what_it_downloads():
    text = load_yaml(ROOT / "configs/starter.yaml")["description"]
    total = listing(shipped("starter"))["total"]
    said = f"{total['used']:,} sentence pairs in {total['files']} files"
    assert (said in " ".join(text.split()), total["unknown"]) == (True, 0)
    assert f"({total['kilobytes'] / 1000:.0f} MB)" in text


def test_starter_needs_nothing_but_python():
    experiment = shipped("starter")
    assert set(experiment.segmenters.values()) == {"sacremoses", "jieba", "fugashi"}
    assert len({language.script for language in experiment.languages.values()}) == 6


def test_the_command_prints_the_list_of_an_experiment(tmp_path):
    def run(*words):
        command = [sys.executable, "-m", "ems.cli", "corpora", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    text = run("list", "--experiment", "ems62").stdout
    assert text == as_text(shipped("ems62"))
    assert json.loads(run("list", "--experiment", "tiny", "--json").stdout)["experiment"] == "tiny"
    failed = run("update")
    assert failed.returncode == 1
    assert "give OpusTools' database, --db FILE" in failed.stderr
