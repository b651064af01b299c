"""The paper's experiment to its tables, on tiny files with the names of OPUS and the benchmarks.

Only sizes and languages of configs/ems62.yaml are changed: 12 of the 62 languages, among them all
with unusual codes; with `EMS_ALL_LANGUAGES=1` all, which takes many times as long.
"""

import csv
import json
import os
import re
import shutil
from itertools import cycle, product

import pytest
import yaml
from conftest import copy_project, planned, write_program
from made import golden
from made.corpora import (
    cut_languages,
    translations,
    write_flores,
    write_lines,
    write_mined,
    write_sib,
    write_tatoeba,
    write_zip,
)
from made.evalsets import bucc, pack, pawsx, write_files, xnli_files, xsimpp
from made.experiments import shipped

from ems.base.schema import plain
from ems.config.languages import load_languages, load_tatoeba_codes
from ems.corpora.catalogue import pair_sizes

PAIRS = 12  # in each file


TOPICS = ("entertainment", "geography", "health", "politics", "science/technology", "sports")


TOPICS += ("travel",)


XNLI = "ar bg de el en es fr hi ru sw th tr ur vi zh"


ENTAILED = ("entailment", "neutral", "contradiction") * 2


TESTED = ("valid", "test")


COUNTERFACTUAL = {"EN": ("train", *TESTED), "DE": TESTED, "JP": TESTED}


def sentences(names, seed, count=PAIRS):
    """Translations with a word of the file in them, so that no two files share a sentence."""
    items = translations(count, names, seed=seed, least=3)
    return [{name: f"{text} {seed}" for name, text in item.items()} for item in items]


def lines_of(code, seed, count=PAIRS):
    return [item[code] for item in sentences([code], seed, count)]


def write_evalsets(mirror, tatoeba):
    """Every benchmark as it is published, except ParaCrawl, which lies among the corpora."""
    for code, items in tatoeba.items():
        write_tatoeba(mirror, code, [(item[code], item["en"]) for item in items])
    for language in load_languages().values():
        code = language.flores200
        write_flores(mirror, code, lines_of(code, f"flores {code}"))
        write_sib(mirror, code, topics_of(code))
    for code, part in product(("de", "fr", "ru", "zh"), ("sample", "training")):
        items = sentences([code, "en"], f"bucc {code} {part}")
        sides = {
            kind: [f"{side}-{at}\t{item[side]}" for at, item in enumerate(items)]
            for kind, side in (("de", code), ("en", "en"))
        }
        write_files(mirror, bucc(code, part, sides | {"gold": [f"{code}-0\ten-0"]}))
    splits = {
        split: [(c, *pair) for c in XNLI.split() for pair in entailed(c, f"xnli {c} {split}")]
        for split in ("dev", "test")
    }
    write_files(mirror / "xnli", xnli_files(splits, entailed("en", "xnli train")))
    for code, splits in COUNTERFACTUAL.items():
        for split in splits:
            lines = lines_of(code.lower(), f"counterfactual {code} {split}")
            rows = [f"{line}\t{at % 2}" for at, line in enumerate(lines)]
            path = mirror / "counterfactual" / f"{code}_{split}.tsv"
            write_lines(path, ["sentence\tis_counterfactual", *rows])
    kinds = cycle(("causality_alternation", "entity_replacement", "number_replacement"))
    english = lines_of("eng_Latn", "flores eng_Latn")
    wrong = {f"not {x}": {"errtype": next(kinds), "src": x} for x in english}
    write_files(mirror / "xsimpp", xsimpp(wrong, ()))
    pack(mirror / "pawsx" / "x-final.tar.gz", pawsx())


def topics_of(code):
    parts = ("train", "dev", "test")
    texts = {part: lines_of(code, f"sib {code} {part}", len(TOPICS)) for part in parts}
    return {part: list(zip(TOPICS, own, strict=True)) for part, own in texts.items()}


def entailed(code, seed):
    lines = lines_of(code, seed)
    return list(zip(ENTAILED, lines[::2], lines[1::2], strict=True))


NAME = "ems62"
pytestmark = pytest.mark.slow
ODD = ["en", "de", "fa", "gu", "ja", "ku", "nb", "pt", "ru", "tl", "yo", "zh"]
UNSEEN = ["ang", "yid"]  # languages of Tatoeba that EMS was not trained on
SHORT = "en-tl"  # of WikiMatrix: all of it is held out for validation
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
exec sed 's/./& /g'
"""  # its words are characters


def smaller(value):
    """Return the experiment with other sizes and languages."""
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
    """Write every file of every corpus.

    Europarl's German has a sentence of Tatoeba; the only file of Kurdish has nothing else.
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
    """Return the names of the files of ParaCrawl that an experiment retrieves from."""
    return ["-".join(sorted(["en", code])) for code in experiment.evalsets["paracrawl"].languages]


def put_jumanpp(project):
    program = project.folder / "programs" / "jumanpp"
    write_program(program, JUMANPP)
    project.environment["PATH"] = f"{program.parent}:{project.environment['PATH']}"
    project.environment["LC_ALL"] = "C.UTF-8"  # a character is no byte


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A project in which `snakemake all` has run; tests must leave its results alone."""
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


def listing(run):
    """List heads and labels of the tables, fetched files, and counts of the report."""
    lines = ["# tables: columns; first cells of the rows", ""]
    for path in sorted((run.folder / "results/tables").glob("*.csv")):
        head, *rows = csv.reader(path.read_text().splitlines())
        labels = dict.fromkeys(row[0] for row in rows)
        lines.append(f"{path.stem}: {', '.join(head)}; {', '.join(labels)}")
    data = run.folder / "data/opus"
    files = sorted(path for path in data.rglob("*") if path.name.endswith((".zip", ".tsv.gz")))
    lines += ["", "# fetched files", "", *(str(path.relative_to(data)) for path in files)]
    lines += ["", "# decontamination", ""]
    for (corpus, pair), entry in sorted(report(run).items()):
        counts = {"read": entry["read"], "kept": entry["kept"], **entry["removed"]}
        lines.append(f"{corpus} {pair}: " + ", ".join(f"{n} {key}" for key, n in counts.items()))
    return "\n".join(lines) + "\n"


@pytest.mark.skipif("EMS_ALL_LANGUAGES" in os.environ, reason="other languages than the file's")
def test_tables_files_and_counts_are_the_golden_ones(run):
    """Files have the names of their source: en-jp, en-fil, en-zh_tw. Caps apply to each file; the
    first mined pairs are held out, and mined pairs below the threshold are not read.
    """
    golden.check("ems62.txt", listing(run))


def test_the_report_adds_up_and_nothing_is_lost_between_the_stages(run):
    for (corpus, pair), entry in report(run).items():
        assert entry["read"] == entry["kept"] + sum(entry["removed"].values())
        version = entry["version"]
        folder = run.folder / f"results/{NAME}/shards/shared/{corpus}/{version}/{pair}"
        shard = json.loads((folder / "manifest.json").read_text())
        assert shard["pairs"] + shard["dropped"] == entry["kept"]


def test_japanese_went_through_jumanpp_and_chinese_through_jieba(run):
    def words(name):
        text = run.folder / f"results/{NAME}/text/segmented/{name}.tsv"
        return text.read_text().splitlines()[0].split("\t")[1].split()

    assert all(len(word) == 1 for word in words("GlobalVoices/v2018q4/en-ja"))
    assert len(words("UNPC/v1.0/en-zh")) > 1


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


# --- plans of shipped experiments


def small62(project):
    """Return small62 with a mirror in the place of directories, which would have to exist."""
    path = project.folder / "configs/small62.yaml"
    value = yaml.safe_load(path.read_text().replace("../shared/data", "https://mirror.invalid"))
    for name in [name for name, entry in value["evalsets"].items() if "path" in entry]:
        del value["evalsets"][name]
        value["decontaminate"]["against"].remove(name)
        value["benchmarks"].remove(name)
    path.write_text(yaml.safe_dump(value, sort_keys=False))


@pytest.mark.parametrize("name", [NAME, "small62"])
def test_plans_made_offline_without_segmenters_are_the_golden_ones(name, fresh):
    if name == "small62":
        small62(fresh)
    bare = fresh.folder / "bare"  # a PATH with only the programs that Snakemake itself needs
    bare.mkdir()
    for program in ("snakemake", "python", "bash", "sh", "which"):
        (bare / program).symlink_to(shutil.which(program, path=fresh.environment["PATH"]))
    fresh.environment["PATH"] = str(bare)
    output = fresh.snakemake("-n", "--cores", "1", "--config", f"experiment={name}", "--", "all")
    jobs = planned(output)
    golden.check(f"plan_{name}.txt", "".join(f"{rule} {n}\n" for rule, n in sorted(jobs.items())))
    assert not (fresh.folder / "results").exists()
    if name == NAME:
        assert re.search("not on this machine, needed where prepare jobs run: .*jumanpp", output)
        assert (
            jobs["prepare"] + jobs["prepare_validation"]
            == jobs["shard"]
            < len(pair_sizes(shipped(NAME))) / 2
        )
        assert jobs["total"] <= 400
        gpus = re.findall(r"rule bench:\n(?: .*\n)*? *resources: .*\bgpu=(\d)", output)
        assert (len(gpus), set(gpus)) == (jobs["bench"], {"1"})  # without, encoding takes days
