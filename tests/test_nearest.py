"""Exact search and mining: neighbours, margins, CSLS and F1 on BUCC 2018 equal plain loops."""

import math
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from made.bench import (
    HashEncoder,
    Listed,
    error_of,
    naive_best,
    naive_best_pairs,
    naive_margins,
    naive_nearest,
    noisy,
    scored,
    unit,
)
from made.corpora import write_lines
from made.forked import growth
from made.scores import check_golden, means

from ems.base.errors import EmsError
from ems.bench import margin, nearest, task
from ems.bench.margin import MARGINS, best_by_margin, best_candidates, best_pairs, pairs_of
from ems.bench.significance import f1_interval
from ems.benchmarks.bucc2018.data import part_files, read_part
from ems.benchmarks.families.mining import best_threshold


def naive_mine(first, second, k, margin):
    """[(score, at, other), ...], the best first: best candidates of both sides, each once."""
    scores = naive_margins(first, second, k, margin)
    pairs = [*enumerate(naive_best(first, second, k, margin, True))]
    pairs += [(at, other) for other, at in enumerate(naive_best(second, first, k, margin, True))]
    kept = []
    for at, other in sorted(pairs, key=lambda pair: -scores[pair]):
        if not any(at == one or other == two for _, one, two in kept):
            kept.append((scores[at, other], at, other))
    return kept


def naive_f1(mined, gold):
    """(best F1, precision, recall, pairs extracted) over all cuts of scored pairs."""
    cuts = []
    for least in sorted({score for score, _, _ in mined}, reverse=True):
        extracted = {(one, other) for score, one, other in mined if score >= least}
        right, count = len(extracted & gold), len(extracted)
        f1 = 2 * right / (count + len(gold))
        cuts.append((f1, right / count, right / len(gold), count))
    return max(cuts, key=lambda cut: cut[0])


@pytest.fixture
def tiles(monkeypatch):
    """A function that sets the sizes of the tiles of all searches."""

    def resize(rows, columns, group=4):
        for module in (margin, nearest):
            monkeypatch.setattr(module, "ROWS", rows)
            monkeypatch.setattr(module, "COLUMNS", columns)
        monkeypatch.setattr(nearest, "GROUP", group)

    return resize


@pytest.fixture(params=["numpy", "torch"])
def products(request, monkeypatch):
    """Products of numpy, or of PyTorch as on a GPU."""
    device = torch.device("cpu") if request.param == "torch" else None
    for module in (margin, nearest):
        monkeypatch.setattr(module, "gpu_of", lambda setting: device)


# --- neighbours


def exact(count, seed, width=4):
    """Vectors of small whole numbers, whose products are exact and often equal."""
    return np.random.default_rng(seed).integers(-2, 3, size=(count, width)).astype(np.float32)


def as_lists(neighbours):
    """[(similarity, index), ...] of each item, like `naive_nearest`."""
    rows = zip(neighbours.similarity.tolist(), neighbours.index.tolist(), strict=True)
    return [list(zip(*row, strict=True)) for row in rows]


@pytest.mark.parametrize(("rows", "columns", "group"), [(8192, 4096, 64), (16, 12, 4), (7, 5, 3)])
@pytest.mark.parametrize("k", [1, 4, 9, 60])
def test_neighbours_equal_a_double_loop_for_any_tiles(rows, columns, group, k, tiles, products):
    tiles(rows, columns, group)
    first, second = exact(50, 1), exact(43, 2)
    there, back = nearest.nearest(first, second, k)
    expected = naive_nearest(first, second, k)
    assert as_lists(there) == expected
    assert as_lists(back) == naive_nearest(second, first, k)
    ties = sum(len({s for s, _ in nearest_of}) < len(nearest_of) for nearest_of in expected)
    assert ties > (0 if k == 1 else 20) - 1  # a guard: the order of equals mattered


def test_zero_and_minus_zero_are_equal():
    similarity = np.array([[-0.0, 0.0, -0.0, -1e-30]], np.float32)
    keys = nearest.keys_of(similarity, np.arange(4))
    values, index = nearest.parts_of(np.sort(keys)[:, ::-1])
    assert index.tolist() == [[0, 1, 2, 3]]
    assert values.tolist() == similarity.tolist()


WITHOUT = """
import sys
import numpy as np
if sys.argv[1] != "cpu":
    sys.modules["torch"] = None
from ems.bench.margin import best_pairs
rows = np.eye(3, dtype=np.float32)
print(best_pairs(rows, rows, 3, 1, sys.argv[1]).second, {"torch", "pydantic"} & {*sys.modules})
"""


def test_a_search_on_a_cpu_needs_no_pytorch_and_one_on_a_gpu_says_so():
    run = partial(subprocess.run, capture_output=True, text=True)
    assert run([sys.executable, "-c", WITHOUT, "cpu"]).stdout == "[0 1 2] set()\n"
    assert run([sys.executable, "-c", WITHOUT, "auto"]).stdout.startswith("[0 1 2]")
    error = run([sys.executable, "-c", WITHOUT, "cuda"]).stderr.splitlines()[-1]
    assert error.startswith("ems.base.errors.EmsError: a search on a GPU needs")


def search(count):
    random = np.random.default_rng(1)
    sets = [random.normal(size=(count, 32)).astype(np.float32) for _ in range(2)]
    nearest.nearest(*sets, 4)


@pytest.mark.slow
def test_a_search_needs_memory_for_a_few_tiles_only():
    whole = 16_000 * 16_000 * 4  # bytes: 1 GB
    assert growth(search, 16_000) < 320 << 20 < whole / 3


def test_a_full_disk_is_an_error(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(task, "MEMORY_LIMIT", 100)
    monkeypatch.setattr(task.os, "posix_fallocate", full)
    with pytest.raises(EmsError, match=r"no room for 120 bytes of embeddings \(No space left"):
        task.empty((10, 3), tmp_path)


# --- margins (Artetxe and Schwenk 2019)


def mined(first, second, k=4, name="ratio", once=True):
    sides = nearest.Distinct(first), nearest.Distinct(second)
    return pairs_of(nearest.nearest(*sides, k), sides, name, once)


def pairs_in(mined):
    return list(zip(mined.first.tolist(), mined.second.tolist(), strict=True))


@pytest.mark.parametrize("name", list(MARGINS))
@pytest.mark.parametrize("k", [1, 4])
def test_mined_pairs_and_their_scores_equal_plain_loops(name, k, tiles):
    tiles(32, 16, 8)
    first, second = noisy(70, 6, seed=5, noise=0.8)
    second = second[:61]
    found = mined(first, second, k, name)
    expected = naive_mine(first, second, k, name)
    assert pairs_in(found) == [pair[1:] for pair in expected]
    assert found.score == pytest.approx([pair[0] for pair in expected], abs=1e-5)


@pytest.mark.parametrize("name", list(MARGINS))
@pytest.mark.parametrize("k", [1, 4, 40])
def test_the_best_candidate_equals_plain_loops_over_all_or_the_nearest(name, k, tiles, products):
    tiles(32, 16, 8)
    queries, candidates = noisy(60, 6, seed=7, noise=0.8)
    queries = queries[:23]
    for function, among_nearest in ((best_candidates, False), (best_by_margin, True)):
        best = function(queries, candidates, k, name).tolist()
        assert best == naive_best(queries, candidates, k, name, among_nearest)
        near = function(queries, candidates, k, "absolute").tolist()
        if k == 4:  # a guard: the margin changes what is found
            assert (best == near) == (name == "absolute")
    if (name, k) == ("ratio", 4):
        assert best_by_margin(queries, candidates).tolist() == best


@pytest.mark.parametrize("columns", [1, 2, 4096])
def test_of_equal_candidates_the_first_is_the_best(columns, monkeypatch):
    monkeypatch.setattr(margin, "COLUMNS", columns)
    rows = np.eye(3, dtype=np.float32)[[0, 1, 1, 2, 2]]
    assert best_candidates(rows, rows, 1, "absolute").tolist() == [0, 1, 1, 3, 3]
    for name in MARGINS:
        assert best_by_margin(rows[:2], rows[[0, 0, 1, 1]], 2, name).tolist() == [0, 2]


def test_of_many_copies_the_first_is_the_best_whatever_bits_a_product_gives_them():
    distinct = unit(np.random.default_rng(3).normal(size=(7, 64)))
    drawn = np.random.default_rng(4).integers(0, 7, 1000)
    first = [drawn.tolist().index(at) for at in range(7)]
    found = best_candidates(np.tile(distinct, (20, 1)), distinct[drawn], 2, "absolute")
    assert found.tolist() == first * 20


def test_a_ratio_to_a_negative_neighbourhood_is_zero_and_prefers_the_nearer():
    first = np.array([[1, 0], [1, 1e-9]], np.float32)
    second = np.array([[0, 1], [-1, 0]], np.float32)
    assert mined(first, second, 2, "ratio").score.tolist() == [0.0]
    assert np.isfinite(mined(first, second, 2, "distance").score).all()
    assert best_by_margin(first[:1], -np.eye(2, dtype=np.float32), 2, "ratio").tolist() == [1]


@pytest.mark.parametrize("name", list(MARGINS))
def test_copies_and_zeros_change_no_margin(name, tiles):
    tiles(32, 16, 8)
    sides = [unit(side)[:count] for side, count in zip(noisy(70, 6, 5, 0.8), (70, 61), strict=True)]
    copied, came_from = [], []
    for side, more in zip(sides, ([3] * 5 + [9], [3] * 9 + [9]), strict=True):
        came_from.append(np.array([*range(30), -1, *more, *range(30, len(side)), -1]))
        copied.append(np.where(came_from[-1][:, None] < 0, 0, side[came_from[-1]]))
    for once in (True, False):
        found, plain = (mined(*each, 4, name, once) for each in (copied, sides))
        rows = [own[row] for own, row in zip(came_from, (found.first, found.second), strict=True)]
        scores = dict(
            zip(zip(*map(np.ndarray.tolist, rows), strict=True), found.score, strict=True)
        )
        expected = dict(zip(pairs_in(plain), plain.score, strict=True))
        assert {pair: scores[pair] for pair in expected} == pytest.approx(expected, abs=1e-5)
        assert len(set(pairs_in(found))) == len(found.score) > len(plain.score)
        if once:  # more copies of a row may be in more pairs
            assert len(set(found.first)) == len(set(found.second)) == len(found.score)
        else:
            assert len(scores) == len(expected)
    for function in (best_candidates, best_by_margin):
        best = function(copied[0], copied[1], 4, name)[came_from[0] >= 0]
        expected = function(*sides, 4, name)[came_from[0][came_from[0] >= 0]]
        assert came_from[1][best].tolist() == expected.tolist()


# --- CSLS (Conneau et al. 2018)


def related(rows, columns, seed, width=8):
    """Two sets of unit vectors; some of the second are near to some of the first."""
    random = np.random.default_rng(seed)
    first, second = random.normal(size=(rows, width)), random.normal(size=(columns, width))
    shared = min(rows, columns) // 2
    second[:shared] = first[:shared][::-1] + 0.3 * second[:shared]
    return unit(first), unit(second)


@pytest.mark.parametrize("size", [(8192, 4096), (16, 12)])
@pytest.mark.parametrize("k", [0, 1, 4, 10, 99])
@pytest.mark.parametrize(("rows", "columns", "keep"), [(60, 45, 30), (60, 45, 900), (1, 1, 9)])
def test_the_best_pairs_equal_plain_loops(rows, columns, keep, k, size, tiles):
    tiles(*size)
    first, second = related(rows, columns, seed=rows + k)
    best = best_pairs(first, second, keep, k)
    every = naive_best_pairs(first, second, rows * columns, k)
    assert len(best.score) == len(set(pairs_in(best))) == min(keep, rows * columns)
    assert np.allclose(best.score, [score for score, _, _ in every[:keep]], atol=1e-6)
    scores = {(i, j): score for score, i, j in every}
    assert np.allclose(best.score, [scores[pair] for pair in pairs_in(best)], atol=1e-6)
    cosines = np.einsum("nd,nd->n", first[best.first], second[best.second])
    assert np.allclose(best.similarity, cosines, atol=1e-6)


def test_the_second_pass_skips_rows_that_cannot_be_in_a_best_pair(monkeypatch):
    taken, block = [], margin.block

    def spy(rows, *place):
        if rows[:1].size > 1:  # vectors, not means
            taken.append(len(rows))
        return block(rows, *place)

    monkeypatch.setattr(margin, "block", spy)
    best_pairs(*related(600, 500, seed=5), 40, 10)
    first, second = taken
    assert 0 < first < 400
    assert 0 < second < 350


@pytest.mark.parametrize("keep", [7, 40])
def test_of_equal_pairs_the_first_are_kept(keep, tiles, products):
    tiles(8, 4)
    same = np.tile(unit([[3.0, 4.0]]), (20, 1))
    best = best_pairs(same, same[:13], keep, 10)
    assert pairs_in(best) == [divmod(at, 13) for at in range(keep)]
    assert np.allclose(best.score, 0, atol=1e-6)


# --- BUCC 2018

WIDTH = 5
GERMAN = {f"de-{at}": f"Satz {at}" for at in range(WIDTH)}
ENGLISH = {f"en-{at}": f"line {at}" for at in range(WIDTH)}
COSINES = [0.9, 0.8, 0.7, 0.6, 0.5]  # of de-0 en-0, de-1 en-1, ...
GOLD = [("de-0", "en-0"), ("de-2", "en-2"), ("de-3", "en-1")]
# By hand, absolute margin. 1 pair: 1 right, F1 2/(1+3); 2: 1, 2/5; 3: 2, 4/6; 4: 2, 4/7; 5: 2, 4/8
SAMPLE = {"de": {"de-8": "Probe 0", "de-9": "Probe 1"}, "en": {"en-8": "try 0", "en-9": "try 1"}}
SAMPLE_COSINES, SAMPLE_GOLD = [1.0, 1.0], [("de-8", "en-8")]
RATES = ("f1", "precision", "recall", "extracted")


def vectors(german, english, cosines):
    """Vectors of sentences: pairs at these cosines, all others at right angles."""
    near, far = np.eye(2 * WIDTH)[: len(cosines)], np.eye(2 * WIDTH)[WIDTH:][: len(cosines)]
    share = np.array(cosines)[:, None]
    turned = share * near + np.sqrt(1 - share**2) * far
    return dict(zip(german, near, strict=True)) | dict(zip(english, turned, strict=True))


def write_part(folder, part, sentences, english, gold):
    pairs = sentences.items(), english.items(), gold
    for name, rows in zip(part_files("de", part), pairs, strict=True):
        write_lines(folder / name, ["\t".join(row) for row in rows])


@pytest.fixture
def folder(tmp_path):
    write_part(tmp_path / "bucc", "training", GERMAN, ENGLISH, GOLD)
    write_part(tmp_path / "bucc", "sample", *SAMPLE.values(), SAMPLE_GOLD)
    return tmp_path / "bucc"


@pytest.fixture
def encoder():
    training = vectors(GERMAN.values(), ENGLISH.values(), COSINES)
    return Listed(training | vectors(SAMPLE["de"].values(), SAMPLE["en"].values(), SAMPLE_COSINES))


def changes_of(folder, **protocol):
    entry = {"version": "v2018", "languages": ["de"], "protocol": protocol, "path": str(folder)}
    return {"evalsets": {"bucc2018": entry}, "benchmarks": ["bucc2018"]}


def run(folder, tmp_path, encoder, **protocol):
    return scored(tmp_path, "bucc2018", folder, encoder, **changes_of(folder, **protocol))


def values_of(scores):
    rates = {name or "f1": means(scores, name)["de"] for name in ("", "precision", "recall")}
    return {**scores.details["de"], **rates}


def test_bucc_scores_are_those_counted_by_hand(folder, tmp_path, encoder):
    check_golden("bucc2018.txt", run(folder, tmp_path, encoder, margin="absolute").path)
    # with the oracle the sample part is not encoded
    assert encoder.asked == [("de", list(GERMAN.values())), ("en", list(ENGLISH.values()))]
    values = values_of(run(folder, tmp_path, encoder, margin="absolute", threshold="sample"))
    assert [values[name] for name in RATES] == [0, 0, 0, 0]  # a threshold above every score


def test_f1_of_bucc_has_the_interval_of_its_pairs(folder, tmp_path, encoder):
    scores = run(folder, tmp_path, encoder)
    own = scores.details["de"]
    expected = f1_interval(own["correct"], own["extracted"], own["gold"])
    assert [row.interval for row in scores.rows] == [expected, None, None]
    assert expected[0] < scores.rows[0].value <= expected[1]


def test_the_setting_limits_the_kept_pairs_that_are_not_gold(folder, tmp_path, encoder):
    write_part(folder, "training", GERMAN, ENGLISH, [("de-4", "en-4")])
    for most in (0, 1, 3):
        scores = run(folder, tmp_path, encoder, margin="absolute", missed=most)
        missed = scores.details["de"]["missed"]
        assert [pair["id"] for pair in missed] == ["de-0", "de-1", "de-2"][:most]


@pytest.fixture
def random_folder(tmp_path):
    """About half of the sentences have a translation: for HashEncoder, the same last word."""
    draw = np.random.default_rng(8)
    for part, count in (("training", 60), ("sample", 40)):
        german = {f"de-{at}": f"Satz {part} w{at}" for at in range(count)}
        words = draw.permutation(count + count // 2)[:count].tolist()
        english = {f"en-{at}": f"line {part} w{word}" for at, word in enumerate(words)}
        gold = [(f"de-{word}", f"en-{at}") for at, word in enumerate(words) if word < count]
        write_part(tmp_path / "bucc", part, german, english, gold)
    return tmp_path / "bucc"


def naive_part(folder, part):
    """[(score, id, id), ...] and the gold pairs of one part."""
    *sides, gold = read_part(folder, "de", part)
    encoded = [unit(HashEncoder().encode(list(side.values()), "de")) for side in sides]
    mined = naive_mine(*encoded, 4, "ratio")
    first, second = map(list, sides)
    return [(score, first[one], second[other]) for score, one, other in mined], set(gold)


def test_f1_with_the_oracle_equals_the_best_cut_of_plain_loops(random_folder, tmp_path):
    values = values_of(run(random_folder, tmp_path, HashEncoder()))
    *rates, extracted = naive_f1(*naive_part(random_folder, "training"))
    expected = [*(100 * rate for rate in rates), extracted]
    assert [values[name] for name in RATES] == pytest.approx(expected)
    assert 30 < values["f1"] < 98  # a guard: neither trivial nor hopeless


def test_f1_with_the_samples_threshold_is_that_of_plain_loops(random_folder, tmp_path):
    values = values_of(run(random_folder, tmp_path, HashEncoder(), threshold="sample"))
    sample, gold = naive_part(random_folder, "sample")
    count = naive_f1(sample, gold)[3]
    threshold = (sample[count - 1][0] + sample[count][0]) / 2
    assert values["threshold"] == pytest.approx(threshold, abs=1e-5)
    training, gold = naive_part(random_folder, "training")
    extracted = {(one, other) for score, one, other in training if score >= threshold}
    assert values["extracted"] == len(extracted)
    assert values["f1"] == pytest.approx(200 * len(extracted & gold) / (len(extracted) + len(gold)))


BELOW, ABOVE = math.nextafter(0.5, 0), math.nextafter(0.5, 1)


@pytest.mark.parametrize(
    ("scores", "correct", "gold", "expected"),
    [
        # cut after the first alone would be best, but never between equal scores
        ([0.9, 0.9, 0.5, 0.4], [True, False, False, False], 1, pytest.approx(0.7)),
        ([0.9, 0.5], [True, True], 2, 0.5),  # after the last pair it is its score
        ([0.3], [False], 2, 0.3),
        ([0.9, 0.8, 0.7], [True, False, True], 2, 0.7),  # 2/5 is more than 1/3
        ([0.5, BELOW], [True, False], 1, 0.5),  # nothing lies between neighbouring numbers
        ([ABOVE, 0.5], [True, False], 1, ABOVE),
    ],
)
def test_a_threshold_lies_halfway_below_the_best_cut(scores, correct, gold, expected):
    assert best_threshold(np.array(scores), np.array(correct), gold) == expected


def test_scores_are_the_same_bytes_in_memory_and_mapped(random_folder, tmp_path, monkeypatch):
    def content():
        return run(random_folder, tmp_path, HashEncoder()).path.read_bytes()

    first = content()
    assert content() == first
    monkeypatch.setattr(task, "LINES_AT_ONCE", 7)
    assert content() == first
    monkeypatch.setattr(task, "MEMORY_LIMIT", 0)
    assert content() == first
    assert [path.name for path in (tmp_path / "scores").iterdir()] == ["bucc2018.json"]


@pytest.mark.parametrize(("lines", "place"), [(99, "sentence 4"), (2, "sentence 2")])
def test_an_error_names_the_sentence_also_after_the_first_part(
    folder, tmp_path, encoder, monkeypatch, lines, place
):
    encoder.vectors["Satz 3"] = [math.nan] * (2 * WIDTH)
    monkeypatch.setattr(task, "LINES_AT_ONCE", lines)
    message = error_of(tmp_path, "bucc2018", folder, encoder, **changes_of(folder))
    after = ", after 2 sentences" if lines == 2 else ""
    assert message.startswith(f"bucc2018 de training{after}: the embedding of {place} is zero")
