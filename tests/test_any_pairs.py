"""Laws of the whole workflow without English, on text of your own in every form."""

import csv
import json
import re
from itertools import cycle, permutations
from typing import Any

import pytest
import yaml
from conftest import copy_project
from made.corpora import translations, write_flores, write_form, write_sib, write_tatoeba

from ems.base.files import read_json
from ems.benchmarks.sib200.data import CLASSES

pytestmark = pytest.mark.slow
FLORES = {"de": "deu_Latn", "fr": "fra_Latn", "nl": "nld_Latn", "sw": "swh_Latn"}
CODES = tuple(FLORES)
FILES = {  # pair -> the form and how it is packed
    "de-fr": ("tsv", ".gz"),
    "nl-de": ("two", ".xz"),
    "fr-nl": ("jsonl", ".zst"),
    "de-sw": ("parquet", ""),
    "sw-fr": ("translation", ""),
}
VALUE = """
description: four languages, and English is none of them
seed: 1
languages: [de, fr, nl, sw]
sources: {flores200: mirror/flores200, sib200: mirror/sib200, tatoeba: mirror/tatoeba}
splits: {Mine: {first: {validation: 40}, rest: train}}
corpora: [{name: Mine, part: train, files: FILES}]
validation: {name: Mine, part: validation, files: FILES}
evalsets: {flores200: {version: v1}, sib200: {version: v1}, tatoeba: {version: v1}}
decontaminate: {against: [flores200, sib200, tatoeba]}
segmenters: {default: none}
vocabulary: {size: 300, sample_lines: 2000, character_coverage: 1.0}
model: {layers: 1, width: 16, heads: 2, feed_forward: 32, max_tokens: 40}
objectives: {head: {language_width: 4}, contrastive: {width: 8}}
train: {steps: 20, batch_pairs: 8, validate_every: 10, threads: 1, device: cpu}
systems: {ems: {}, char-ngram: {kind: char-ngram}}
benchmarks: [flores200, sib200]
probes: {sib200: {source: fr, seeds: 2, epochs: 3, hidden: []}}
tables: {printed: []}
"""


def items(name, count):
    """Translations with a name in them, so that no two sets share one."""
    drawn = translations(count, CODES, seed=name, least=3)
    return [{code: f"{text} {name}" for code, text in item.items()} for item in drawn]


def write_mirror(mirror):
    """FLORES-200, SIB-200 and Tatoeba in the four languages. A sentence of FLORES-200."""
    flores, sib, tatoeba = (items(name, 21) for name in ("flores", "sib", "tatoeba"))
    for code, name in FLORES.items():
        write_flores(mirror, name, [item[code] for item in flores])
        examples = list(zip(cycle(CLASSES), [item[code] for item in sib], strict=False))
        write_sib(mirror, name, dict.fromkeys(("train", "dev", "test"), examples))
        pairs = [(item[code], f"english {at}") for at, item in enumerate(tatoeba)]
        write_tatoeba(mirror, name.partition("_")[0], pairs)
    return flores[3]


def pairs_of(project, leak):
    """The user's files: 160 pairs each, one of them with a sentence of a benchmark."""
    files = {}
    for pair, (form, suffix) in FILES.items():
        codes = pair.split("-")
        rows = [tuple(item[code] for code in codes) for item in items(pair, 160)]
        rows[100] = tuple(leak[code] for code in codes)
        folder = project.folder / "own" / pair
        place = write_form(folder, form, codes, rows, suffix)
        files[pair] = json.loads(json.dumps(place).replace(f"{project.folder}/", ""))
    return files


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    project = copy_project(tmp_path_factory.mktemp("any"))
    project.files = pairs_of(project, write_mirror(project.folder / "mirror"))
    project.select("any", yaml.safe_load(VALUE.replace("FILES", json.dumps(project.files))))
    project.snakemake("all")
    return project


def test_the_workflow_without_english_goes_to_the_tables(run):
    tables = {path.stem: path for path in (run.folder / "results/tables").glob("*.csv")}
    assert {"flores", "sib200", "corpora", "decontamination", "filters", "models"} <= set(tables)
    scores = read_json(run.folder / "results/any/scores/ems/flores200.json", Any)
    ways = {(row["source"], row["target"]) for row in scores["rows"]}
    assert ways == set(permutations(FLORES.values(), 2))
    topics = read_json(run.folder / "results/any/scores/ems/sib200.json", Any)
    ways = {(row["source"], row["target"]) for row in topics["rows"]}
    assert ways == {("fr", code) for code in CODES}
    languages = [row[0] for row in csv.reader(tables["corpora"].read_text().splitlines())]
    assert languages[1:6] == ["de-fr", "de-nl", "de-sw", "fr-nl", "fr-sw"]


def test_each_form_is_read_decontaminated_and_recorded(run):
    report = read_json(run.folder / "results/any/reports/decontamination.json", Any)
    train = {entry["pair"]: entry for entry in report["corpora"] if entry["role"] == "train"}
    assert set(train) == {"de-fr", "de-nl", "de-sw", "fr-nl", "fr-sw"}
    for entry in train.values():
        assert entry["read"] == 120 == entry["kept"] + entry["removed"]["evaluation"]
        assert entry["removed"]["evaluation"] == 1
        assert all((run.folder / path).is_file() for path in entry["sha256"])
    names = {"own/nl-de/mine.nl.xz", "own/nl-de/mine.de.xz"}
    assert set(train["de-nl"]["sha256"]) == names
    lines = (run.folder / "results/any/text/clean/Mine+train/own/de-nl.tsv").read_text()
    assert all(line.split("\t")[0].endswith("nl-de") for line in lines.splitlines())


def test_a_changed_file_is_cleaned_again_and_a_missing_one_is_named(run):
    path = run.folder / run.files["sw-fr"]
    path.write_text(path.read_text() + '{"translation": {"sw": "moja", "fr": "un"}}\n')
    plan = run.snakemake("-n", "results/any/reports/decontamination.json")
    assert len(re.findall("rule prepare(_validation)?:", plan)) == 2  # both parts of that pair
    path.unlink()
    message = run.run("ems", "check", expect=1).stderr
    assert f"corpora.0.files: file not found: {run.files['sw-fr']}" in message
