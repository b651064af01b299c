"""Laws of `ems corpora list`: every count is a known one or a `?`, and they add up."""

import csv
import io
import json

import pytest
from conftest import ROOT
from made.cli import Cli
from made.experiments import REAL, Settings, shipped

from ems.config.languages import opus_files
from ems.config.load import load_yaml
from ems.corpora.catalogue import licence_of
from ems.tables.printed import load_pairs
from ems.workflow.downloads import as_csv, as_json, as_text

TED = {"name": "TED2020", "version": "v1"}
WIKI = {"name": "WikiMatrix", "version": "v1"}
BASE = REAL | {"languages": ["en", "de", "zh", {"code": "xq"}], "validation": None}


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, BASE)


def listed(project, *corpora, **more):
    return json.loads(as_json(project.load(BASE | {"corpora": list(corpora)} | more)))


def test_a_corpus_has_the_pairs_files_and_kilobytes_of_the_table(project):
    row = listed(project, TED)["corpora"][0]
    files = opus_files("TED2020", "v1")
    names = ["de-en", "en-zh_cn", "en-zh_tw", "en-zh"]
    assert row["languages"] == ["de", "zh"]
    assert (row["pairs"], row["files"]) == (2, 4)
    assert row["sentence_pairs"] == row["used"] == sum(files[name].pairs for name in names)
    assert row["kilobytes"] == sum(files[name].kilobytes for name in names)
    assert row["licence"] == licence_of("TED2020")


def test_a_cap_limits_each_file_of_what_is_used_and_not_what_is_downloaded(project):
    whole, capped = (
        listed(project, TED | more)["total"] for more in ({}, {"max_pairs": {"zh": 9_000}})
    )
    assert capped["sentence_pairs"] == whole["sentence_pairs"]
    assert capped["kilobytes"] == whole["kilobytes"]
    files = opus_files("TED2020", "v1")
    assert capped["used"] == files["de-en"].pairs + 2 * 9_000 + min(9_000, files["en-zh"].pairs)


def test_what_is_not_in_the_table_is_not_known_and_never_nothing(project):
    own = {"name": "Mine", "version": "1", "source": "x", "languages": ["de"]}
    rows = listed(project, TED, own)
    assert rows["corpora"][1]["used"] is None
    assert rows["corpora"][1]["licence"] == "yours"
    assert (rows["total"]["unknown"], rows["total"]["unknown_kilobytes"]) == (1, 1)
    text = as_text(project.load())
    assert [line.split()[-3:-1] for line in text.splitlines() if "Mine" in line] == [["?", "?"]]
    assert f"{rows['total']['used']:,}?" in text
    assert "? of 1 language pairs of a corpus the count is not known" in text
    german = next(row for row in rows["languages"] if row["language"] == "de")
    assert (german["unknown"], german["at_most"], german["difference"]) == (1, None, None)


def test_of_mined_pairs_the_count_lies_between_none_and_that_of_opus(project):
    mined = {**WIKI, "format": "mined", "threshold": 1.075, "languages": ["de"]}
    row = listed(project, mined)["languages"][0]
    count = opus_files("WikiMatrix", "v1")["de-en"].pairs
    assert (row["used"], row["at_most"]) == (None, count)
    assert row["difference"] == count - load_pairs()["de"].ems < 0


def test_the_parts_of_a_corpus_share_its_files(project):
    splits = {"WikiMatrix": {"first": {"validation": 1000}, "rest": "train"}}
    wiki = {**WIKI, "languages": ["de"]}
    parts = {"validation": wiki | {"part": "validation"}, "splits": splits}
    rows = listed(project, wiki | {"part": "train"}, **parts)
    lines = opus_files("WikiMatrix", "v1")["de-en"].pairs
    assert [row["used"] for row in rows["corpora"]] == [lines - 1000, 1000]
    assert [row["files"] for row in rows["corpora"]] == [1, 0]
    assert rows["corpora"][1]["kilobytes"] == 0
    assert rows["total"]["sentence_pairs"] == lines
    assert rows["total"]["train"]["used"] == lines - 1000
    assert [row["used"] for row in rows["languages"]] == [lines - 1000]


def test_the_csv_has_a_row_for_each_corpus_and_pair_that_add_up_and_the_text_has_columns(project):
    experiment = project.load(BASE | {"corpora": [TED, {"name": "UNPC", "version": "v1.0"}]})
    rows = list(csv.DictReader(io.StringIO(as_csv(experiment))))
    places = [(row["corpus"], row["language"]) for row in rows]
    assert places == [("TED2020", "de"), ("TED2020", "zh"), ("UNPC", "zh")]
    assert rows[1]["files"] == "en-zh_cn en-zh_tw en-zh"
    head, *lines = as_text(experiment).split("\n\n")[1].splitlines()
    end = head.index("used") + len("used")  # the columns stand under each other
    assert all(line[end - 1].isdigit() and not line[end : end + 1].strip() for line in lines)
    total = json.loads(as_json(experiment))["total"]
    for column in ("sentence_pairs", "used", "kilobytes"):
        assert sum(int(row[column]) for row in rows) == total[column]


def test_the_papers_experiment_has_all_corpora_and_comes_near_to_table_one():
    whole = json.loads(as_json(shipped("ems62")))
    corpora = "Europarl GlobalVoices News-Commentary OpenSubtitles TED2020 UNPC WikiMatrix+train"
    corpora += " Tatoeba WikiMatrix+validation"
    assert [row["corpus"] for row in whole["corpora"]] == corpora.split()
    rows = {row["language"]: row for row in whole["languages"]}
    assert set(rows) == set(load_pairs())
    train = whole["total"]["train"]
    assert train["used"] < whole["table_1_total"] < train["at_most"]
    for language in ("eu", "ka", "kk", "hy", "mn", "et", "lv"):  # no WikiMatrix to speak of
        row = rows[language]
        assert abs(row["used"] - row["table_1"]) < 0.05 * row["table_1"], row
    (paracrawl,) = whole["evalsets"]  # how much retrieval downloads stands in the settings
    assert (paracrawl["evalset"], paracrawl["files"]) == ("paracrawl", 21)
    gigabytes = f"{paracrawl['kilobytes'] / 1e6:.1f} GB"
    assert gigabytes in (ROOT / "configs/ems62.yaml").read_text()


def test_a_set_that_is_drawn_of_a_corpus_needs_its_whole_files_and_is_listed_apart(project):
    sets = BASE["evalsets"] | {"paracrawl": {"version": "v5"}, "europarlxsr": {"version": "v9"}}
    rows = listed(project, TED, evalsets=sets)
    known = opus_files("ParaCrawl", "v5")["de-en"]
    assert rows["evalsets"] == [
        {"evalset": "paracrawl", "corpus": "ParaCrawl", "version": "v5", "files": 1}
        | {"lines": known.pairs, "kilobytes": known.kilobytes},
        {"evalset": "europarlxsr", "corpus": "Europarl", "version": "v9", "files": 1}
        | {"lines": None, "kilobytes": None},  # not a release of the table
    ]
    text = as_text(project.load())
    assert rows["total"] == listed(project, TED)["total"]
    cells = [line.split() for line in text.splitlines()]
    assert ["paracrawl", "ParaCrawl", "v5", "1", f"{known.pairs:,}", "4,709"] in cells
    assert ["europarlxsr", "Europarl", "v9", "1", "?", "?"] in cells


def test_starter_says_what_it_downloads_and_needs_nothing_but_python():
    experiment = shipped("starter")
    text = load_yaml(ROOT / "configs/starter.yaml")["description"]
    total = json.loads(as_json(experiment))["total"]
    words = f"{total['used']:,} sentence pairs in {total['files']} files"
    assert (words in " ".join(text.split()), total["unknown"]) == (True, 0)
    assert f"({total['kilobytes'] / 1000:.0f} MB)" in text
    assert set(experiment.segmenters.values()) == {"unicode"}
    assert len({language.script for language in experiment.languages.values()}) == 6


def test_the_command_prints_the_list_of_an_experiment(tmp_path):
    ems, tiny = Cli(tmp_path), shipped("tiny")
    job = ("corpora", "list", "--experiment", "tiny")
    for flags, form in ((), as_text), (("--json",), as_json), (("--csv",), as_csv):
        assert ems.run(*job, *flags)[0] == form(tiny)
    assert "expected nothing more, found cy" in ems.error("corpora", "update", "cy")


def test_documents_have_languages_and_no_sentence_pairs(project):
    own = {"name": "Own", "version": "v1", "kind": "documents", "source": "x"}
    alone, beside = (
        project.load(BASE | {"corpora": corpora, "objectives": OBJECTIVES[len(corpora) > 1]})
        for corpora in ([own], [own, TED])
    )
    text = as_text(alone)
    assert "Table I" not in text
    assert "count is not known" not in text
    (row,) = (line.split() for line in text.splitlines() if line.startswith("Own"))
    assert row[-6:] == ["languages", "4", "-", "-", "?", "yours"]
    listing = json.loads(as_json(beside))
    only = listed(project, TED)
    assert [row["kind"] for row in listing["corpora"]] == ["documents", "pairs"]
    counts = ("pairs", "sentence_pairs", "used", "at_most", "unknown", "train")
    assert [listing["total"][key] for key in counts] == [only["total"][key] for key in counts]
    assert listing["languages"] == only["languages"]


OFF = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}, "context": {"weight": 1}}
OBJECTIVES = {True: {}, False: OFF}  # what learns from pairs, or from documents alone
