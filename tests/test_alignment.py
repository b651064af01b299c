"""Sentence alignment: precision and recall by plain loops, laws, whole documents, the table."""

import hashlib
from random import Random

import numpy as np
import pytest
from conftest import SHARED, needs
from made import golden
from made.bench import scored
from made.corpora import write_lines
from made.experiments import Settings, hashes
from made.scores import write_alignment
from made.tables import csv_rows

from ems.benchmarks.alignment.data import read_document, read_sides
from ems.benchmarks.alignment.demo import demo_files
from ems.benchmarks.alignment.score import (
    LENGTHS,
    MAIN,
    MEASURES,
    aligned,
    equal_vectors,
    figures_of,
)
from ems.benchmarks.alignment.table import TABLES
from ems.corpora.demo.texts import build
from ems.corpora.evalsets.sets import units_of
from ems.tables.engine import write_systems

TEST = TABLES["alignment"].printed.protocol["documents"]
SETS = {"benchmarks": ["alignment"], "decontaminate": {"against": ["alignment"]}}


def partition(random, count):
    """Alignments of a document of about `count` sentences, up to three to three."""
    pairs, places = [], [0, 0]
    while max(places) < count:
        spans = [range(at, at + random.randint(1, 3)) for at in places]
        pairs.append(tuple(map(tuple, spans)))
        places = [span.stop + random.randint(0, 1) for span in spans]
    return pairs


def mistaken(pairs, random):
    """Alignments of which some are joined with the next one, moved by a sentence, or left out."""
    pairs, wrong = list(pairs), []
    while pairs:
        source, target = pairs.pop(0)
        mistake = random.randint(0, 5)
        if mistake == 1 and pairs:
            wrong.append((source + pairs[0][0], target + pairs.pop(0)[1]))
        elif mistake == 2:
            wrong.append((source, tuple(n + 4 for n in target)))
        elif mistake:
            wrong.append((source, target))
    return wrong


def plain_figures(predicted, gold):
    """Every pair compared with every other: vecalign's definitions, written out."""

    def share(documents, kind):
        right = total = 0
        for pairs, others in documents:
            for source, target in pairs:
                total += 1
                if kind == "strict":
                    right += any(pair == (source, target) for pair in others)
                else:
                    near = [other for other in others if any(n in other[0] for n in source)]
                    right += any(n in other[1] for other in near for n in target)
        return 100 * right / total if total else 0

    figures = {}
    for kind in ("strict", "lax"):
        precision = share(list(zip(predicted, gold, strict=True)), kind)
        recall = share(list(zip(gold, predicted, strict=True)), kind)
        both = precision + recall
        f1 = 2 * precision * recall / both if both else 0
        figures |= {f"{kind} P": precision, f"{kind} R": recall, f"{kind} F1": f1}
    return figures


@pytest.fixture
def random():
    return Random(4)


def test_the_figures_are_those_of_plain_loops(random):
    values = []
    for _ in range(30):
        gold = [partition(random, 20) for _ in range(3)]
        predicted = [mistaken(pairs, random) for pairs in gold]
        figures = figures_of(predicted, gold)
        assert figures == pytest.approx(plain_figures(predicted, gold))
        values += [figures["strict F1"], figures["lax F1"]]
    assert 0 < min(values) < max(values) < 100
    assert figures_of([[]], [[]]) == dict.fromkeys(MEASURES, 0)


def test_swapped_arguments_swap_precision_and_recall_and_equal_ones_are_perfect(random):
    gold = [partition(random, 30)]
    predicted = [mistaken(gold[0], random)]
    one, other = figures_of(predicted, gold), figures_of(gold, predicted)
    for kind in ("strict", "lax"):
        assert one[f"{kind} P"] == other[f"{kind} R"] != one[f"{kind} R"]
        assert one[f"{kind} F1"] == pytest.approx(other[f"{kind} F1"])
    assert figures_of(gold, gold) == dict.fromkeys(MEASURES, 100)
    turned = [
        [[(target, source) for source, target in pairs] for pairs in each]
        for each in (predicted, gold)
    ]
    assert figures_of(*turned) == pytest.approx(one)  # the languages may be exchanged


def test_lax_is_an_overlap_on_both_sides_with_one_alignment_of_the_gold():
    gold = [((0, 1), (0,)), ((2,), (1, 2))]
    cases = {((0,), (0,)): 100, ((1, 2), (2,)): 100, ((0,), (1,)): 0, ((3,), (1,)): 0}
    for pair, lax in cases.items():
        figures = figures_of([[pair]], [gold])
        assert (figures["strict P"], figures["lax P"]) == (0, lax)


# --- documents


class Words:
    """The sum of a vector of each word's first letters, which languages share by `meaning`."""

    def __init__(self, meaning):
        self.meaning = meaning

    def encode(self, lines, language, what="encode"):
        rows = []
        for line in lines:
            seeds = [hashlib.sha256(self.meaning.get(w, w).encode()).digest() for w in line.split()]
            each = [np.random.default_rng([*seed[:8]]).normal(size=64) for seed in seeds]
            rows.append(np.sum(each, axis=0))
        return np.array(rows, np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The demo's documents."""
    folder = tmp_path_factory.mktemp("documents")
    for name, text in demo_files(build()).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def meaning(folder):
    """German and French words of 1:1 alignments -> one word, by their place in the sentence."""
    words = {}
    for name in TEST.split():
        (german, french), gold = read_document(folder, name)
        for source, target in gold:
            own = " ".join(german[n] for n in source).split()
            other = " ".join(french[n] for n in target).split()
            words |= {w: other[at * len(other) // len(own)] for at, w in enumerate(own)}
    return words


def test_documents_are_read_with_their_alignments_without_deletions(folder):
    shapes = set()
    for name in TEST.split():
        sides, gold = read_document(folder, name)
        taken = [[n for pair in gold for n in pair[side]] for side in (0, 1)]
        for lines, numbers in zip(sides, taken, strict=True):
            assert numbers == sorted(set(numbers))
            assert 0 <= len(lines) - len(numbers) < 10  # sentences without a partner
        shapes |= {(len(source), len(target)) for source, target in gold}
    assert shapes == {(1, 1), (1, 2), (2, 1), (1, 3)}


def test_an_encoder_is_scored_on_all_documents_and_beats_the_lengths(folder, meaning, tmp_path):
    own = {"alignment": {"version": "v1", "path": str(folder)}}
    file = scored(tmp_path, "alignment", folder, Words(meaning), evalsets=own, **SETS)
    gold = [read_document(folder, name)[1] for name in TEST.split()]
    assert {score.count for score in file.rows} == {sum(map(len, gold))}
    assert {(score.source, score.target) for score in file.rows} == {("de", "fr")}
    assert file.protocol == {"documents": TEST, "largest": 8}
    own = {score.measure or MAIN: score.value for score in file.rows if not score.split}
    lengths = {score.split: score.value for score in file.rows if score.measure == LENGTHS}
    assert own.keys() == lengths.keys() == set(MEASURES)
    assert own[MAIN] > 90 > 70 > lengths[MAIN] > 20
    pairs = [aligned(read_document(folder, name)[0], equal_vectors, 8) for name in TEST.split()]
    assert lengths == pytest.approx(plain_figures(pairs, gold))


def test_the_documents_are_a_setting_that_sentences_and_scores_follow(folder, meaning, tmp_path):
    protocol = {"documents": ["test2"], "largest": 2}
    own = {"alignment": {"version": "v1", "path": str(folder), "protocol": protocol}}
    file = scored(tmp_path, "alignment", folder, Words(meaning), evalsets=own, **SETS)
    assert file.rows[0].count == len(read_document(folder, "test2")[1])
    assert file.protocol == {"documents": "test2", "largest": 2}
    (lines,) = read_sides(folder, "fr", ["test2"])
    assert lines == (folder / "test2.fr").read_text("utf-8").splitlines()


def test_other_documents_are_decontaminated_against_and_scored_again(tmp_path):
    settings = Settings(tmp_path)
    jobs = {}
    for key, value in {"documents": ["dev"], "largest": 4, "": None}.items():
        own = {"version": "v1", "protocol": {key: value}} if key else {"version": "v1"}
        experiment = settings.changed(evalsets={"alignment": own}, **SETS)
        jobs[key] = hashes(experiment)
        units = units_of(experiment, "alignment")
        names = ["dev"] if key == "documents" else TEST.split()
        parts = ("de", "fr", "defr")
        assert sorted(units) == sorted(f"{name}.{part}" for name in names for part in parts)
    changed = {
        key: {name.split()[0] for name in of if of[name] != jobs[""][name]}
        for key, of in jobs.items()
    }
    assert changed == {"documents": {"evalkeys", "bench"}, "largest": {"bench"}, "": set()}


def test_the_development_document_is_read_whole():
    """Its twin above is made."""
    published = SHARED / "bleualign"
    needs(published.is_dir(), f"{published} is not there")
    sides, gold = read_document(published, "dev")
    assert ([*map(len, sides)], len(gold)) == ([468, 554], 381)
    figures = figures_of([aligned(sides, equal_vectors, 8)], [gold])
    assert figures["strict F1"] < 75 < figures["lax F1"]


# --- the table


def test_the_table_has_six_measures_the_lengths_and_printed_rows_of_the_same_documents(tmp_path):
    files = [write_alignment(tmp_path, name, value) for name, value in {"a": 60, "b": 80}.items()]
    out = tmp_path / "t.tex"
    write_systems(TABLES["alignment"], files, out, printed=["EMS"])
    golden.check_table("alignment", out)
    rows = csv_rows(out)
    assert [rows["a"][name] for name in MEASURES] == [
        "60.0",
        "61.0",
        "62.0",
        "63.0",
        "64.0",
        "65.0",
    ]
    assert "vecalign (printed)" in rows
    dev = {"protocol": {"documents": "dev", "largest": 8}}
    write_systems(
        TABLES["alignment"], [write_alignment(tmp_path, "c", 50, **dev)], out, printed=["EMS"]
    )
    assert list(csv_rows(out)) == ["c", LENGTHS]
    assert "test documents" in out.with_suffix(".md").read_text(encoding="utf-8")


def test_sentences_with_an_empty_list_or_a_third_field_are_read(tmp_path):
    write_lines(tmp_path / "a.de", ["eins", "", "zwei"])
    write_lines(tmp_path / "a.fr", ["un", "deux"])
    write_lines(tmp_path / "a.defr", ["[0]:[0]:0.25", "[ 2 ]:[1]", "[]:[]", "[1]:[]"])
    assert read_document(tmp_path, "a")[1] == [((0,), (0,)), ((2,), (1,))]
    assert read_sides(tmp_path, "de", ["a"]) == [["eins", "zwei"]]
