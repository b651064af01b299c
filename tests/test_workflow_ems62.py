"""The paper's experiment itself, to its tables, on tiny files with the names that OPUS and the
benchmarks have.

`configs/ems62.yaml` is run as it is but for its sizes. With 12 of its 62 languages, among them
every odd code; `EMS_ALL_LANGUAGES=1` takes them all, which takes many times as long.
"""

import csv
import json
import os
import re
import shutil

import pytest
import yaml
from conftest import copy_project, planned, write_program
from made.corpora import cut_languages, write_mined, write_zip
from made.evalsets import PAIRS, sentences, write_evalsets
from made.experiments import shipped

from ems.base.schema import plain
from ems.config.languages import load_languages, load_tatoeba_codes
from ems.corpora.catalogue import pair_sizes
from ems.corpora.evalsets.sets import units_of

NAME = "ems62"
ODD = ["en", "de", "fa", "gu", "ja", "ku", "nb", "pt", "ru", "tl", "yo", "zh"]
UNSEEN = ["ang", "yid"]  # of the benchmark, in no table
SHORT = "en-tl"  # of WikiMatrix: no longer than what validates, so that nothing is left to train on
SYSTEMS = ["ems", "ems-no-xtr"]
SIZES = yaml.safe_load("""
splits: {WikiMatrix: {first: {validation: 3}, rest: train}}
vocabulary: {size: 700, sample_lines: 9000, character_coverage: 1.0}
model: {layers: 1, width: 16, heads: 2, feed_forward: 32, max_tokens: 40}
objectives: {head: {language_width: 4}, contrastive: {width: 8, negatives: 8}}
train:
  {steps: 6, batch_pairs: 16, warmup_steps: 2, validate_every: 3, checkpoint_every: 3, threads: 1,
   device: cpu}
systems:
  ems-batch-200: {}
  ems-released: {} # float16 needs a GPU
  ems-matryoshka: {objectives: {matryoshka: {weight: 1, dimensions: [8]}}}
probes:
  sib200: {seeds: 2, epochs: 2, hidden: [4], batch: 7}
  counterfactual: {seeds: 2, epochs: 2, hidden: [4]}
  xnli: {seeds: 2, epochs: 1, hidden: [4], batch: 6}
tables: {systems: [ems, ems-no-xtr], ablation: [ems, ems-no-xtr], printed: [EMS]}
""")
DRAWN = {"queries": 4, "candidates": 8}  # of ParaCrawl
COPIES = ["bucc2018", "counterfactual", "xnli"]  # whose downloads have known checksums
MIRRORED = ["flores200", "sib200", "pawsx", "xsimpp"]
CAPS = {2_000_000: 8, 5_000_000: 10}
JUMANPP = """#!/bin/sh
[ "$1" = --segment ] && exec sed 's/./& /g'
exec sed -u 's/.*/EOS/'
"""  # its words are characters; to pyknp it has nothing to say, and says so at once


def smaller(value):
    """The experiment with other sizes and languages, and nothing else changed."""
    value = value | {"languages": languages(value)}
    for key, sizes in SIZES.items():
        value[key] = {**value[key], **sizes}
    del value["sweep"]  # its axes go through the sizes of the paper
    for name in COPIES:
        value["evalsets"][name]["path"] = f"mirror/{name}"
    value["evalsets"]["paracrawl"]["protocol"] = DRAWN
    for entry in value["corpora"]:
        caps = entry.get("max_pairs")
        if isinstance(caps, dict):
            entry["max_pairs"] = {language: CAPS[cap] for language, cap in caps.items()}
        elif caps is not None:
            entry["max_pairs"] = CAPS[caps]
    return value


def languages(value):
    return value["languages"] if os.environ.get("EMS_ALL_LANGUAGES") else ODD


def write_corpora(mirror, experiment, tatoeba):
    """Every file of every corpus. Europarl's German holds a sentence of the benchmark `tatoeba`,
    the only file of Kurdish holds nothing else.
    """
    for _, corpus in experiment.all_corpora():
        for pair in corpus.pairs:
            for name in corpus.files(pair):
                items = sentences(name.split("-"), f"{corpus.name} {name}".replace("-", ""))
                if (corpus.name, name) == ("Europarl", "de-en"):
                    items[5] = {"de": tatoeba["deu"][0]["deu"], "en": "a harmless translation"}
                if (corpus.name, name) == ("Tatoeba", "en-ku"):
                    items = [{"ku": item["kur"], "en": item["en"]} for item in tatoeba["kur"]]
                if corpus.mined:
                    items = items[:3] if name == SHORT else items
                    scores = [1.3 - at / 100 for at in range(len(items))] + [1.07]
                    write_mined(mirror, name, [*items, items[0]], scores)
                else:
                    write_zip(mirror, corpus.name, corpus.version, name, items)


def retrieved(experiment):
    """The files of ParaCrawl that an experiment retrieves from."""
    return ["-".join(sorted(["en", code])) for code in experiment.evalsets["paracrawl"].languages]


def put_jumanpp(project):
    program = project.folder / "programs" / "jumanpp"
    write_program(program, JUMANPP)
    project.environment["PATH"] = f"{program.parent}:{project.environment['PATH']}"
    project.environment["LC_ALL"] = "C.UTF-8"  # a character is no byte


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A project in which `snakemake all` has run it. Tests must leave its results alone."""
    project = copy_project(tmp_path_factory.mktemp("ems62"))
    path = project.folder / f"configs/{NAME}.yaml"
    value = smaller(yaml.safe_load(path.read_text()))
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    site = yaml.safe_load((project.folder / "config.yaml").read_text())
    places = {"opus": "opus", "wikimatrix": "laser", "tatoeba": "tatoeba"}
    places |= {name: name for name in MIRRORED}
    site |= {"experiment": NAME, "sources": {key: f"mirror/{at}" for key, at in places.items()}}
    (project.folder / "config.yaml").write_text(yaml.safe_dump(site))
    if len(value["languages"]) == len(ODD):
        known = [language.tatoeba_v1 for code, language in load_languages().items() if code in ODD]
        cut_languages(project, ODD, [c for c in known + UNSEEN if c in load_tatoeba_codes()])
    put_jumanpp(project)
    project.experiment = shipped(NAME, project.folder)
    codes = (project.folder / "ems/config/languages/tatoeba_v1.txt").read_text().split()
    tatoeba = {c: sentences([c, "en"], f"benchmark {c}") for c in codes if c != "eng"}
    mirror = project.folder / "mirror"
    write_corpora(mirror, project.experiment, tatoeba)
    write_evalsets(mirror, tatoeba)
    for name in retrieved(project.experiment):
        write_zip(mirror, "ParaCrawl", "v5", name, sentences(name.split("-"), f"crawl {name}"))
    project.snakemake("--cores", "2", "all")
    return project


def report(project):
    path = project.folder / f"results/{NAME}/reports/decontamination.json"
    value = json.loads(path.read_text())
    return {(entry["corpus"], entry["pair"]): entry for entry in value["corpora"]}


COLUMNS = {  # of the table of each benchmark some columns
    "tatoeba": {"deu", "pes", "jpn", "cmn", "tgl"},
    "flores": {"af-gu", "te-tl"},
    "bucc2018": {"en-de", "en-ru", "en-zh"},
    "paracrawl": {"de", "pt"},
    "wordorder": {"Cosine"},
    "xsim": {"de", "zh"},
    "sib200": {"en", "de", "yo"},
    "counterfactual": {"en", "de", "ja"},
    "pawsx": {"en", "de", "ja", "zh"},
    "xnli": {"en", "de", "ru", "zh"},
}
ROWS = {  # of its systems, where they are not just these
    "tatoeba": [*SYSTEMS, "EMS (printed)"],
    "xsim": [f"{name}: {system}" for name in ("xsim", "xsim++") for system in SYSTEMS],
}


def test_all_makes_the_papers_tables_with_a_row_for_each_system(run):
    folder = run.folder / "results/tables"
    others = {"tatoeba_unseen", "models", "ablation", "bucc_missed"}
    others |= {"corpora", "decontamination", "filters", "vocabulary"}
    assert {path.stem for path in folder.glob("[!.]*")} == others | set(COLUMNS)
    for name, columns in COLUMNS.items():
        header, *rows = csv.reader((folder / f"{name}.csv").read_text().splitlines())
        assert set(header) >= columns, name
        expected = ROWS.get(name, SYSTEMS)
        assert [row[0] for row in rows if name == "tatoeba" or row[0] in expected] == expected, name


def test_every_file_has_the_name_that_it_has_at_its_source(run):
    data = run.folder / "data/opus"
    for name in (
        "GlobalVoices/v2018q4/moses/en-jp.txt.zip",
        "GlobalVoices/v2018q4/moses/en-fil.txt.zip",
        "TED2020/v1/moses/en-fil.txt.zip",
        "OpenSubtitles/v2018/moses/en-zh_cn.txt.zip",
        "OpenSubtitles/v2018/moses/en-zh_tw.txt.zip",
        "TED2020/v1/moses/en-zh_cn.txt.zip",
        "TED2020/v1/moses/en-nb.txt.zip",
        "UNPC/v1.0/moses/en-zh.txt.zip",
        "WikiMatrix/v1/mined/WikiMatrix.en-fa.tsv.gz",
        "Tatoeba/v2022-03-03/moses/en-gu.txt.zip",  # nothing else has it
    ):
        assert (data / name).is_file(), name
    for name in ("OpenSubtitles/v2018/moses/en-no.txt.zip", "TED2020/v1/moses/en-ku.txt.zip"):
        assert not (data / name).exists(), name
    fetched = {path for path in data.rglob("*") if path.name.endswith((".zip", ".tsv.gz"))}
    sizes = [size for size in pair_sizes(run.experiment) if not size.shared]
    drawn = [data / f"ParaCrawl/v5/moses/{name}.txt.zip" for name in retrieved(run.experiment)]
    assert set(drawn) <= fetched
    files = sum(len(size.corpus.files(size.pair)) for size in sizes)
    assert len(fetched) == files + len(drawn) > 40


def test_the_caps_count_each_file_and_the_first_mined_pairs_are_held_out(run):
    entries = report(run)
    for pair, files in (("en-zh", 2), ("en-pt", 1), ("de-en", 1)):
        entry = entries["OpenSubtitles", pair]
        assert (entry["read"], entry["removed"]["cap"]) == (PAIRS * files, (PAIRS - 8) * files)
    assert entries["UNPC", "en-ru"]["removed"]["cap"] == PAIRS - 10
    assert entries["UNPC", "en-zh"]["removed"]["cap"] == PAIRS - 8
    assert entries["WikiMatrix+validation", "de-en"]["read"] == 3
    assert entries["WikiMatrix+train", "de-en"]["read"] == PAIRS - 3  # not the one under 1.075
    for part, count in (("validation", 3), ("train", 0)):
        assert entries[f"WikiMatrix+{part}", SHORT]["read"] == count
    assert entries["Europarl", "de-en"]["removed"]["evaluation"] == 1
    assert entries["Tatoeba", "en-ku"]["removed"]["evaluation"] == PAIRS  # and the run goes on


def test_the_report_adds_up_and_nothing_is_lost_between_the_stages(run):
    for (corpus, pair), entry in report(run).items():
        assert entry["read"] == entry["kept"] + sum(entry["removed"].values())
        version = entry["version"]
        folder = run.folder / f"results/{NAME}/shards/shared/{corpus}/{version}/{pair}"
        shard = json.loads((folder / "manifest.json").read_text())
        assert shard["pairs"] + shard["dropped"] == entry["kept"]


def test_japanese_went_through_jumanpp_and_chinese_through_jieba(run):
    logs = run.folder / f"results/{NAME}/logs/segment"
    assert "jumanpp" in (logs / "GlobalVoices-v2018q4-en-ja.log").read_text()
    assert "jieba" in (logs / "UNPC-v1.0-en-zh.log").read_text()
    words = run.folder / f"results/{NAME}/text/segmented/GlobalVoices/v2018q4/en-ja.tsv"
    japanese = words.read_text().splitlines()[0].split("\t")[1]
    assert all(len(word) == 1 for word in japanese.split())


# --- the experiment as it is shipped


def test_it_is_scored_as_sections_v_a_to_v_d_say():
    sets = shipped(NAME).evalsets
    counts = {"tatoeba": 112, "flores200": 62, "bucc2018": 4, "paracrawl": 21}
    assert {name: len(sets[name].languages) for name in counts} == counts
    mining = {"k": 4, "margin": "ratio"}
    assert plain(sets["bucc2018"].protocol).items() >= (mining | {"threshold": "oracle"}).items()
    drawn = {"queries": 2_000, "candidates": 200_000}
    assert plain(sets["paracrawl"].protocol).items() >= (mining | drawn).items()


def test_no_sentence_of_a_benchmark_is_trained_on():
    experiment = shipped(NAME)
    scored = set(experiment.evalsets) - {"paracrawl"}
    assert set(experiment.decontaminate.against) == scored
    assert "ParaCrawl" not in {corpus.name for _, corpus in experiment.all_corpora()}


# --- the plan of all of it


def test_the_whole_experiment_can_be_planned_offline_where_no_segmenter_is(fresh):
    """Every job: each file once, each pair of each corpus through each stage."""
    bare = fresh.folder / "bare"  # a PATH with nothing on it but what Snakemake itself needs
    bare.mkdir()
    for name in ("snakemake", "python", "bash", "sh", "which"):
        (bare / name).symlink_to(shutil.which(name, path=fresh.environment["PATH"]))
    fresh.environment["PATH"] = str(bare)
    output = fresh.snakemake("-n", "--cores", "1", "--config", f"experiment={NAME}", "--", "all")
    assert re.search("not on this machine, needed where segment jobs run: .*jumanpp", output)
    jobs = planned(output)
    sizes = pair_sizes(shipped(NAME))
    new = [size for size in sizes if not size.shared]
    mined = [size for size in new if size.corpus.mined]
    assert jobs["fetch_mined"] == len(mined) > 40
    files = sum(len(size.corpus.files(size.pair)) for size in new)
    assert jobs["fetch"] + len(mined) == files + 21  # of ParaCrawl
    assert jobs["decontaminate"] == jobs["segment"] == jobs["shard"] == len(sizes)
    assert {size.language for size in sizes} == set(shipped(NAME).languages) - {"en"}
    experiment = shipped(NAME)
    others = set(experiment.tables.ablation) - set(experiment.shown)  # for Table XIV alone
    assert len(others) == 4
    units = sum(len(units_of(experiment, name)) for name in experiment.evalsets)
    assert jobs["fetch_evalset"] == units > 112 + 2 * 60
    assert jobs["train"] == len(experiment.shown) + 4
    assert jobs["bench"] == len(experiment.shown) * len(experiment.benchmarks) + 2 * 4
    gpus = re.findall(r"rule bench:\n(?: .*\n)*? *resources: .*\bgpu=(\d)", output)
    assert (len(gpus), set(gpus)) == (jobs["bench"], {"1"})  # days of encoding without
