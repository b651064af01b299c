"""Laws of further pairs: the join equals brute force, capped and balanced, and is trained on."""

import random
from collections import Counter, defaultdict
from itertools import combinations, product
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from conftest import copy_project, planned
from made.corpora import read_pairs, translations, write_flores, write_form, write_lines
from made.experiments import MINIMAL, Settings, one_line
from made.shards import contents

from ems.base.files import read_json
from ems.shards.index import TRAIN, read_index
from ems.shards.writer import write_several
from ems.text import multiway
from ems.text.keys import KEYS
from ems.text.multiway import join_pairs
from ems.text.tsv import is_pairs

CODES = ("de", "fr", "ja")  # besides English
CORPORA = ("One", "Two")
ROWS = 400


def draw_rows(seed, letters=False):
    """(corpus, language) -> rows (English, text); many share English up to case and punctuation.

    Some texts are the same in two languages or under two English sentences, some rows repeat, and
    some English has no letters, unless all must have some.
    """
    draw = random.Random(seed)
    items = list(translations(120, ("en", *CODES), seed, least=2))
    rows = {}
    for place in [(corpus, code) for corpus in CORPORA for code in CODES]:
        rows[place] = []
        for _ in range(ROWS):
            item, other = draw.choices(items, k=2)
            english = [item["en"], item["en"].title(), f"{item['en']} !", "- ?"]
            english = draw.choice(english[:3] if letters else english)
            text = draw.choice([item[place[1]], item[place[1]], other[place[1]], item["en"]])
            rows[place].append((english, text))
    return rows


def write_rows(folder, rows):
    """The segmented pair file of each corpus and language, as the workflow has them."""
    paths = []
    for (corpus, code), texts in rows.items():
        turn = -1 if code < "en" else 1  # the sides are in the order of their codes
        lines = ["\t".join([*row[::turn], str(line)]) for line, row in enumerate(texts, 7)]
        name = "-".join(["en", code][::turn])
        paths.append(write_lines(folder / f"text/segmented/{corpus}/v1/{name}.tsv", lines))
    return sorted(paths, key=lambda path: (path.stem, path.parts[-3]))


def groups_of(rows, key="folded"):
    groups = {}
    for (_, code), texts in rows.items():
        for (_, text), shared in zip(texts, KEYS[key]([e for e, _ in texts]), strict=True):
            if shared:
                groups.setdefault(shared, {}).setdefault(code, set()).add(text)
    return groups


def brute_force(rows, key="folded"):
    """{language pair: {(text, text)}}, and how many there are with repetitions and equal texts."""
    pairs, made = defaultdict(set), Counter()
    for texts in groups_of(rows, key).values():
        for first, second in combinations(sorted(texts), 2):
            both = set(product(texts[first], texts[second]))
            made[f"{first}-{second}"] += len(both)
            pairs[f"{first}-{second}"] |= {(one, two) for one, two in both if one != two}
    return pairs, made


ALL = 1000  # of a sentence: more than there are here
VALUE = MINIMAL | {
    "languages": ["en", *CODES],
    "corpora": [{"name": name, "version": "v1", "source": "nowhere"} for name in CORPORA],
}


@pytest.fixture
def join(tmp_path):
    """Join the rows of a seed; the folders of pairs and of reports."""

    def joined(seed, most=ALL, name="out", key="folded", rows=None, **options):
        changes = {"multiway": {"through": "en", "most": most}, "decontaminate": {"key": key}}
        paths = write_rows(tmp_path, rows or draw_rows(seed))
        folders = tmp_path / name / "pairs", tmp_path / name / "reports"
        join_pairs(Settings(tmp_path, VALUE | changes).load(), paths, *folders, **options)
        return folders

    return joined


@pytest.mark.parametrize("key", ["folded", "plain"])
@pytest.mark.parametrize("seed", range(3))
def test_without_a_cap_the_join_equals_brute_force(join, seed, key):
    rows = draw_rows(seed, letters=key == "plain")  # which takes "- ?" for a sentence
    out, reports = join(seed, key=key, rows=rows)
    expected, made = brute_force(rows, key)
    pairs = {name: [row[:2] for row in rows] for name, rows in read_pairs(out).items()}
    assert {name: set(rows) for name, rows in pairs.items()} == expected
    assert min(map(len, expected.values())) > 100
    for name, rows in pairs.items():
        report = read_json(reports / f"{name}.json", Any)
        assert len(rows) == len(set(rows)) == report["kept"]
        assert report["read"] == made[name] == report["kept"] + sum(report["removed"].values())
        assert report["removed"]["cap"] == 0 < report["removed"]["identical"]
        assert report["removed"]["duplicates"] > 0


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_sentence_has_as_many_pairs_as_the_cap_allows(join, most):
    """Each English sentence has its own texts here, so a pair tells its sentence."""
    rows = {
        (corpus, code): [
            (english, f"{code} {corpus if turn % 2 else ''} {english}")
            for turn, (english, _) in enumerate(texts)
        ]
        for (corpus, code), texts in draw_rows(1).items()
    }
    out, reports = join(1, most, rows=rows)
    keys = KEYS["folded"]
    owner, expected = {}, {}
    for key, texts in groups_of(rows).items():
        sizes = [len(each) for each in texts.values()]
        expected[key] = min(most, (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2)
        owner |= {(keys([text])[0], code): key for code in texts for text in texts[code]}
    found = dict.fromkeys(expected, 0)
    for name, each in read_pairs(out).items():
        removed = read_json(reports / f"{name}.json", Any)["removed"]
        assert removed["cap"] > removed["duplicates"] >= 0
        for one, two, _ in each:
            first, second = name.split("-")
            key = owner[keys([one])[0], first]
            assert key == owner[keys([two])[0], second]
            found[key] += 1
    assert max(expected.values()) == most
    assert found == expected  # texts that differ in case alone are two pairs of one key


def test_language_pairs_are_balanced_and_rare_languages_come_first(join):
    items = list(translations(60, ("en", *CODES), seed=1, least=5))
    rows = {("One", code): [(item["en"], item[code]) for item in items] for code in CODES}
    out, _ = join(1, 1, name="one", rows=rows)
    sizes = [len(each) for each in read_pairs(out).values()]
    assert len(sizes) == 3
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) > 50
    rows["One", "ja"] = rows["One", "ja"][:12]
    out, _ = join(1, 2, rows=rows)
    sizes = {name: len(each) for name, each in read_pairs(out).items()}
    assert sizes["de-ja"] == sizes["fr-ja"] == 12


def test_line_numbers_run_through_the_files_of_the_first_language(join):
    rows = draw_rows(2)
    out, reports = join(2)
    texts = {code: [row[1] for name in CORPORA for row in rows[name, code]] for code in CODES}
    seen = 0
    for name, each in read_pairs(out).items():
        code = name.split("-")[0]
        assert all(texts[code][int(line) - 1] == one for one, _, line in each)
        seen += len(each)
        files = read_json(reports / f"{name}.json", Any)["files"]
        pair = "-".join(sorted((code, "en")))
        assert files == {f"{corpus}/v1/{pair}.tsv": 400 for corpus in CORPORA}
    assert seen > 300


@pytest.mark.parametrize("most", [2, ALL])
def test_the_bound_on_memory_changes_no_byte(join, monkeypatch, most):
    whole = contents(join(3, most)[0].parent)
    monkeypatch.setattr(multiway, "HELD", 100)
    with patch.object(multiway, "_sentences", wraps=multiway._sentences) as sentences:
        assert contents(join(3, most, name="small", part=300)[0].parent) == whole
    assert sum(len(call.args[0]) for call in sentences.call_args_list) > 100
    assert sum(map(len, whole.values())) > 10_000


@pytest.mark.parametrize("where", ["_choose", "_distinct", "_entry"])
def test_an_interrupted_run_leaves_nothing(join, tmp_path, where):
    whole = contents(join(3, 2, name="whole")[0].parent)
    with (
        patch.object(multiway, where, side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        join(3, 2)
    assert not list((tmp_path / "out").iterdir())
    left = tmp_path / "out" / ".pairs.1.ems.part" / "rows"  # of a run that was killed
    left.mkdir(parents=True)
    (left / "000").write_text("half a ro")
    assert contents(join(3, 2)[0].parent) == whole
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_no_shared_translation_and_a_folder_of_other_files_are_errors(join, tmp_path):
    rows = {("One", code): [(f"{code} alone", "x")] for code in CODES}
    message = "no two sentences of these 3 files share a translation"
    assert message in one_line(join, 1, rows=rows)
    (tmp_path / "out/pairs").mkdir()
    own = tmp_path / "out/pairs/de-fr.tsv"
    own.write_text("years\tof work\t1\n")
    assert "nothing was written" in one_line(join, 1)
    assert own.read_text() == "years\tof work\t1\n"
    own.unlink()
    assert all(map(is_pairs, join(1)))


def test_a_pair_file_that_changed_is_not_encoded(join, tmp_path):
    out, _ = join(1)
    with open(out / "de-ja.tsv", "a") as file:
        file.write("one\ttwo\t3\n")
    message = one_line(write_several, out, tmp_path / "vocabulary", tmp_path / "shards")
    assert "de-ja.tsv: its SHA-256 is not the one in" in message


# --- the whole workflow: half a minute

FLORES = {"en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn", "sw": "swh_Latn"}
RUN = """
languages: [en, de, fr, sw]
sources: {flores200: mirror/flores200}
corpora:
  - name: Mine
    files: {en-de: own/mine.en-de.tsv, en-fr: own/mine.en-fr.tsv, en-sw: own/mine.en-sw.tsv}
multiway: {through: en, most: 2}
evalsets: {flores200: {version: v1}}
decontaminate: {against: [flores200]}
vocabulary: {size: 300, sample_lines: 2000, character_coverage: 1.0}
vocabularies: {two: {languages: [en, de, fr]}}
model: {layers: 1, width: 16, heads: 2, feed_forward: 32, max_tokens: 40}
objectives: {head: {language_width: 4}, xtr: {weight: 1}, contrastive: {weight: 1, width: 8}}
train: {steps: 6, batch_pairs: 16, threads: 1, device: cpu}
systems: {ems: {}, narrow: {vocabulary: two}}
benchmarks: [flores200]
tables: {printed: []}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A workflow of 120 sentences in four languages, ten of which are evaluation sentences."""
    project = copy_project(tmp_path_factory.mktemp("multiway"))
    project.items = list(translations(120, FLORES, seed=1, least=4))
    for code, name in FLORES.items():
        write_flores(project.folder / "mirror", name, [item[code] for item in project.items[:10]])
        rows = [(item["en"], item[code]) for item in project.items]
        if code == "fr":  # evaluation sentences are aligned with other English
            rows[:10] = [(f"no {english}", text) for english, text in rows[:10]]
        write_form(project.folder / "own", "tsv", ("en", code), rows)
    project.select("multi", MINIMAL | yaml.safe_load(RUN))
    project.snakemake("all")
    project.pairs = read_pairs(project.folder / "results/multi/text/segmented/Multiway/en")
    return project


@pytest.mark.slow
def test_no_further_pair_has_an_evaluation_sentence(run):
    texts = {name: {row[:2] for row in rows} for name, rows in run.pairs.items()}
    assert set(texts) == {"de-fr", "de-sw", "fr-sw"}
    assert texts["de-fr"] <= {(item["de"], item["fr"]) for item in run.items[10:]}
    evaluation = {item[code] for item in run.items[:10] for code in FLORES}
    assert evaluation.isdisjoint(text for rows in texts.values() for row in rows for text in row)
    assert sum(map(len, texts.values())) > 200


@pytest.mark.slow
def test_further_pairs_are_trained_on_counted_and_inspected(run):
    results = run.folder / "results/multi"
    report = read_json(results / "reports/decontamination.json", Any)["corpora"]
    further = {entry["pair"]: entry for entry in report if entry["corpus"] == "Multiway"}
    assert set(further) == {"de-fr", "de-sw", "fr-sw"}
    kept = sum(entry["kept"] for entry in further.values())
    for vocabulary, names in (("shared", set(further)), ("two", {"de-fr"})):
        shards = read_index(results / "shards" / vocabulary / "index.json")[TRAIN]
        own = [shard.parent.name for shard in shards if "Multiway" in shard.parts]
        assert set(own) == names
    rows = (run.folder / "results/tables/corpora.csv").read_text().splitlines()
    (row,) = [line.split(",") for line in rows if line.startswith("through en")]
    assert int(row[4]) == kept
    said = run.run("ems", "check").stderr
    assert "further pairs through en of 3 language pairs, at most 2 of a sentence" in said
    index = "results/multi/shards/shared/index.json"
    shown = run.run("ems", "inspect", "--index", index, "--pair", "de-sw", "--row", "3").stdout
    first, second, line = run.pairs["de-sw"][3]
    assert "corpus Multiway en, pair de-sw" in shown
    assert f"line {line} of results/multi/text/segmented/Mine/own/de-en.tsv" in shown
    assert all(text in shown for text in (first, second))


@pytest.mark.slow
def test_a_second_run_has_nothing_to_do_and_another_cap_joins_again(run):
    assert "Nothing to be done" in run.snakemake("all")
    run.edit("configs/multi.yaml", "most: 2", "most: 1")
    plan = run.snakemake("-n", "results/multi/shards/shared/index.json")
    rules = {"multiway", "shard_multiway", "prepare", "vocabulary"} & planned(plan).keys()
    assert rules == {"multiway", "shard_multiway"}
    run.edit("configs/multi.yaml", "most: 1", "most: 2")
