"""Laws of XNLI and PAWS-X: the features of pairs, the training data, and the threshold."""

import re

import numpy as np
import pytest
import torch
from conftest import SHARED, needs
from made import evalsets
from made.bench import run
from made.corpora import write_lines
from made.experiments import one_line
from made.scores import counts, hits, means
from sklearn.metrics import average_precision_score

import ems.benchmarks.pawsx.data as pawsx
import ems.benchmarks.xnli.data as xnli
from ems.bench import task as embedded
from ems.benchmarks.families.pair_classification import PRECISION, best_threshold
from ems.benchmarks.xnli.score import pairs_pool

LABELS = ("entailment", "neutral", "contradiction")
CODES = ("en", "de", "zh")


class PairEncoder:
    """The number in a sentence is the angle of its vector, in degrees; German is turned."""

    def __init__(self, turned=0):
        self.turned, self.asked = turned, []

    def encode(self, lines, language, what="encode"):
        self.asked.append((language, list(lines), what))
        return np.stack([self.vector(line, language) for line in lines]).astype(np.float32)

    def vector(self, line, language):
        turned = self.turned if line.startswith("b") and language == "de" else 0
        angle = np.deg2rad(float(line.split()[-1]) + turned)
        return np.array([np.cos(angle), np.sin(angle)]) * 2


# --- XNLI


def pair_of(number, seed):
    """(label, premise, hypothesis): the angle between both tells the label."""
    random = np.random.default_rng([seed, number])
    label = number % 3
    first = random.integers(360)
    second = first + (5, 90, 175)[label] + random.integers(-5, 6)
    return LABELS[label], f"a {first}", f"b {second}"


@pytest.fixture
def folder(tmp_path):
    """The published layout: dev and test of three languages, the English training part."""
    splits = {
        split: [(code, *pair_of(at, 1 + len(split))) for code in CODES for at in range(count)]
        for split, count in (("dev", 30), ("test", 36))
    }
    training = [pair_of(at, 0) for at in range(150)]
    evalsets.write_files(tmp_path / "xnli", evalsets.xnli_files(splits, training))
    return tmp_path / "xnli"


PROBE = {"hidden": [16, 8], "epochs": 100, "patience": 0, "learning_rate": 0.02}
OF_XNLI = {"languages": list(CODES), "probes": {"xnli": PROBE}}


def test_features_of_a_pair_are_both_vectors_product_and_difference():
    vectors = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    first, second = [0, 4, 2, 2], [1, 1, 2, 3]
    pool = pairs_pool(torch.from_numpy(vectors), torch.tensor(first), torch.tensor(second))
    rows = torch.tensor([[3, 0], [1, 1]])
    features = pool.take(rows)
    assert features.shape == (2, 2, pool.width) == (2, 2, 12)
    for row, own in zip(rows.flatten().tolist(), features.flatten(0, 1), strict=True):
        u, v = vectors[first[row]], vectors[second[row]]
        assert own.tolist() == pytest.approx([*u, *v, *(u * v), *abs(u - v)])


def test_inference_is_trained_in_english_and_tested_in_each_language(folder, tmp_path):
    scores = run("xnli", tmp_path, folder, PairEncoder(turned=90), **OF_XNLI)
    accuracies = means(scores)
    assert set(accuracies) == {"en-en", "en-de", "en-zh"}
    assert min(accuracies["en-en"], accuracies["en-zh"]) > 90
    assert accuracies["en-de"] < 70  # its hypotheses are turned
    assert set(counts(scores).values()) == {36}
    assert (scores.parallel, list(scores.details)) == (True, ["classifiers"])
    assert len(scores.details["classifiers"]["epochs"]) == len(scores.labelled()["en-de"]) > 1


def test_each_sentence_is_embedded_once_and_only_english_dev_is_read(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "LINES_AT_ONCE", 17)
    encoder = PairEncoder()
    some = run("xnli", tmp_path, folder, encoder, **OF_XNLI)
    learnt = [line for language, lines, what in encoder.asked if "train" in what for line in lines]
    assert len(learnt) == len(set(learnt))
    assert all(len(lines) <= 17 for _, lines, _ in encoder.asked)
    assert {language for language, _, what in encoder.asked if "train" in what} == {"en"}
    monkeypatch.undo()
    assert run("xnli", tmp_path, folder, PairEncoder(), **OF_XNLI) == some  # whatever the batches
    path = folder / "XNLI-1.0/xnli.dev.tsv"
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in lines if not line.startswith("de")))
    again = run("xnli", tmp_path, folder, PairEncoder(), **OF_XNLI)
    assert (again.rows, again.details) == (some.rows, some.details)


def test_a_missing_class_and_an_infinite_embedding_are_errors(folder, tmp_path):
    def error(encoder):
        return one_line(run, "xnli", tmp_path, folder, encoder, **OF_XNLI)

    class Broken(PairEncoder):
        def vector(self, line, language):
            return super().vector(line, language) * (np.nan if language == "zh" else 1)

    assert "xnli zh test: the embedding of sentence 1 is not finite: 'a " in error(Broken())
    path = folder / xnli.TRAIN
    path.write_text(path.read_text().replace("neutral", "entailment"))
    assert error(PairEncoder()).startswith(f"{path}: none of the 150 pairs is neutral; expected")
    path.unlink()
    assert "multinli.train.en.tsv" in error(PairEncoder())


# --- PAWS-X


def write_pawsx(folder, labelled=True):
    """XTREME's layout, test without labels if not `labelled`: similar angles are paraphrases."""
    for code in CODES:
        for split in ("dev", "test"):
            rows = []
            for at in range(40):
                random = np.random.default_rng([at, len(split)])
                alike = int(random.integers(2))
                first = random.uniform(0, 360)
                second = first + (random.uniform(0, 50) if alike else random.uniform(30, 150))
                rows.append([f"a {first}", f"b {second}", f"{alike}"])
            rows[3] = ["NS", "not translated", "1"]
            columns = 3 if labelled or split == "dev" else 2
            write_lines(folder / f"{split}-{code}.tsv", ("\t".join(row[:columns]) for row in rows))
    return folder


def naive_threshold(cosines, truth):
    """Try each cosine and infinity: the first of the best, from the highest."""
    best, mistakes = float("inf"), sum(truth)
    for threshold in sorted(set(cosines), reverse=True):
        wrong = sum((c >= threshold) != t for c, t in zip(cosines, truth, strict=True))
        if wrong < mistakes:
            best, mistakes = threshold, wrong
    return best


@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_equals_an_exhaustive_search(seed):
    random = np.random.default_rng(seed)
    cosines = random.integers(-6, 7, 30) / 6  # with ties
    truth = random.random(30) < (0.5 + cosines / 3 if seed % 3 else 0.02)
    assert best_threshold(cosines, truth) == naive_threshold(cosines.tolist(), truth.tolist())


@pytest.mark.parametrize("labelled", [True, False])
def test_the_threshold_is_chosen_on_english_dev_and_scored_on_other_pairs(labelled, tmp_path):
    folder = write_pawsx(tmp_path / "pawsx", labelled=labelled)
    scores = run("pawsx", tmp_path, folder, PairEncoder(turned=30), languages=list(CODES))

    def pairs(code, split, rows):
        lines = (folder / f"{split}-{code}.tsv").read_text().splitlines()
        cut = [re.split("[ \t]", lines[at]) for at in rows if at != 3]
        turn = 30 if code == "de" else 0
        cosines = [np.cos(np.deg2rad(float(a) - float(b) - turn)) for _, a, _, b, _ in cut]
        return np.array(cosines, np.float32), np.array([label == "1" for *_, label in cut])

    choose = range(40) if labelled else range(0, 40, 2)
    tested = ("test", range(40)) if labelled else ("dev", range(1, 40, 2))
    threshold = naive_threshold(*(part.tolist() for part in pairs("en", "dev", choose)))
    assert scores.details["threshold"] == pytest.approx(threshold, abs=1e-5)
    assert scores.parallel
    assert scores.protocol == {"part": "test" if labelled else "odd rows of dev"}
    for code in CODES:
        cosines, truth = pairs(code, *tested)
        name = f"en-{code}"
        right = (cosines >= threshold - 1e-6) == truth
        (row,) = scores.labelled()[name].values()
        assert hits(row) == right.tolist()
        assert row.value == pytest.approx(100 * right.mean())
        precision = 100 * average_precision_score(truth, cosines)
        assert means(scores, PRECISION)[name] == pytest.approx(precision, abs=1e-3)
        assert counts(scores)[name] == len(truth) == (39 if labelled else 19)


def test_dev_pairs_of_one_label_are_an_error(tmp_path):
    folder = write_pawsx(tmp_path / "pawsx")
    path = folder / "dev-en.tsv"
    path.write_text(path.read_text().replace("\t1\n", "\t0\n"))
    message = one_line(run, "pawsx", tmp_path, folder, PairEncoder(), languages=list(CODES))
    assert "pawsx en, dev: expected pairs with the labels 0 and 1" in message


@pytest.mark.parametrize("real", [False, True])
def test_rows_keep_their_numbers_if_others_are_left_out(real, tmp_path):
    folder = SHARED / "pawsx" if real else write_pawsx(tmp_path)
    needs(folder.is_dir(), "the real data are not available")
    for code in ("de", "zh"):
        pairs = pawsx.read_numbered(folder, code, "dev")
        assert [pair for _, pair in pairs] == pawsx.read_split(folder, code, "dev")
        lines = (folder / f"dev-{code}.tsv").read_text().splitlines()
        for row, pair in pairs:
            assert lines[row].split("\t")[0].strip() == pair.first
    assert 0 < len(pairs) < len(lines)  # a guard: zh lacks some
