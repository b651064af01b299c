"""Laws of the exact search and of margin mining: neighbours, scores and pairs are those of plain
loops, whatever the tiles."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import ROOT
from made.bench import naive_best, naive_mine, naive_nearest, noisy

from ems.base.errors import EmsError
from ems.bench import margin as of_margin
from ems.bench import nearest
from ems.bench import task as embedded
from ems.bench.margin import MARGINS, best_by_margin, best_candidates, pairs_of


def exact(count, seed, width=4):
    """Vectors of small whole numbers, whose products are exact and often equal."""
    return np.random.default_rng(seed).integers(-2, 3, size=(count, width)).astype(np.float32)


def as_lists(neighbours):
    """[(similarity, index), ...] of each item, as the naive search has them."""
    rows = zip(neighbours.similarity.tolist(), neighbours.index.tolist(), strict=True)
    return [list(zip(*row, strict=True)) for row in rows]


@pytest.mark.parametrize(("rows", "columns", "group"), [(8192, 4096, 64), (16, 12, 4), (7, 5, 3)])
@pytest.mark.parametrize("k", [1, 4, 9])
def test_neighbours_in_tiles_are_those_of_a_double_loop_of_equals_the_first(
    rows, columns, group, k, monkeypatch
):
    monkeypatch.setattr(nearest, "ROWS", rows)
    monkeypatch.setattr(nearest, "COLUMNS", columns)
    monkeypatch.setattr(nearest, "GROUP", group)
    first, second = exact(50, 1), exact(43, 2)
    there, back = nearest.nearest(first, second, k)
    expected = naive_nearest(first.tolist(), second.tolist(), k)
    assert as_lists(there) == expected
    assert as_lists(back) == naive_nearest(second.tolist(), first.tolist(), k)
    ties = sum(len({s for s, _ in nearest_of}) < len(nearest_of) for nearest_of in expected)
    assert ties > (0 if k == 1 else 20) - 1  # a guard: the order of equals was at stake


def test_neighbours_of_real_numbers_are_those_of_a_double_loop():
    first, second = noisy(120, 8, seed=3, noise=0.5)
    there, back = nearest.nearest(first, second, 4)
    for neighbours, queries, candidates in ((there, first, second), (back, second, first)):
        expected = naive_nearest(queries.tolist(), candidates.tolist(), 4)
        assert neighbours.index.tolist() == [[at for _, at in row] for row in expected]
        values = [[s for s, _ in row] for row in expected]
        assert np.allclose(neighbours.similarity, values, atol=1e-6)
        assert np.allclose(neighbours.mean, np.mean(values, axis=1), atol=1e-6)


def test_of_fewer_items_than_asked_for_all_are_neighbours():
    first, second = exact(3, 5), exact(7, 6)
    there, back = nearest.nearest(first, second, 5)
    assert (there.index.shape, back.index.shape) == ((3, 5), (7, 3))
    assert as_lists(back) == naive_nearest(second.tolist(), first.tolist(), 5)


def test_zero_and_minus_zero_are_equal():
    similarity = torch.tensor([[-0.0, 0.0, -0.0, -1e-30]])
    keys = nearest.keys_of(similarity, torch.arange(4))
    values, index = nearest.parts_of(keys.sort(descending=True).values)
    assert index.tolist() == [[0, 1, 2, 3]]
    assert values.tolist() == similarity.tolist()


def test_sets_that_lie_in_files_have_the_same_neighbours(tmp_path):
    first, second = noisy(90, 8, seed=4, noise=0.5)
    paths = (tmp_path / "first.npy", tmp_path / "second.npy")
    for path, vectors in zip(paths, (first, second), strict=True):
        np.save(path, vectors)
    mapped = [np.load(path, mmap_mode="r") for path in paths]
    for one, other in zip(
        nearest.nearest(first, second, 4), nearest.nearest(*mapped, 4), strict=True
    ):
        assert one.index.tolist() == other.index.tolist()
        assert one.similarity.tolist() == other.similarity.tolist()


PEAK = """
import numpy as np
from ems.bench.nearest import nearest

def peak():
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

random = np.random.default_rng(1)
sets = [random.normal(size=(24_000, 32)).astype(np.float32) for _ in range(2)]
nearest(*(vectors[:100] for vectors in sets), 4)
before = peak()
nearest(*sets, 4)
print(peak() - before)
"""


def test_a_search_takes_a_few_tiles_of_memory_and_not_the_whole_matrix():
    done = subprocess.run(
        [sys.executable, "-c", PEAK], cwd=ROOT, capture_output=True, text=True, check=True
    )
    whole = 24_000 * 24_000 * 4 / 2**20  # MB: 2,197
    assert float(done.stdout) < 600 < whole / 3


# --- embeddings that do not fit into memory


def test_above_the_limit_embeddings_lie_in_a_file_that_nothing_remains_of(tmp_path, monkeypatch):
    assert type(embedded.empty((10, 3), tmp_path)) is np.ndarray
    monkeypatch.setattr(embedded, "MEMORY_LIMIT", 100)
    scratch = tmp_path / "scores" / "ems"
    vectors = embedded.empty((10, 3), scratch)
    assert isinstance(vectors, np.memmap)
    vectors[:] = 7
    assert vectors.sum() == 210
    assert list(scratch.iterdir()) == []


def test_a_disk_without_room_is_an_error_that_names_it(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embedded, "MEMORY_LIMIT", 100)
    monkeypatch.setattr(embedded.os, "posix_fallocate", full)
    with pytest.raises(EmsError, match=r"no room for 120 bytes of embeddings \(No space left"):
        embedded.empty((10, 3), tmp_path)


# --- margin mining (Artetxe and Schwenk 2019)


def mine(first, second, k=4, name="ratio"):
    return pairs_of(*nearest.nearest(first, second, k), name)


def as_list(mined):
    """[(score, at, other), ...], as the naive mining has them."""
    return list(zip(mined.score.tolist(), mined.first.tolist(), mined.second.tolist(), strict=True))


@pytest.mark.parametrize("name", list(MARGINS))
@pytest.mark.parametrize("k", [1, 4])
def test_mined_pairs_and_their_scores_are_those_of_plain_loops(name, k, monkeypatch):
    monkeypatch.setattr(nearest, "ROWS", 32)
    monkeypatch.setattr(nearest, "COLUMNS", 16)
    monkeypatch.setattr(nearest, "GROUP", 8)
    first, second = noisy(70, 6, seed=5, noise=0.8)
    second = second[:61]
    mined = as_list(mine(first, second, k, name))
    expected = naive_mine(first.tolist(), second.tolist(), k, name)
    assert [pair[1:] for pair in mined] == [pair[1:] for pair in expected]
    assert [pair[0] for pair in mined] == pytest.approx([pair[0] for pair in expected], abs=1e-5)


def test_each_sentence_is_in_one_pair_and_the_best_pairs_come_first():
    first, second = noisy(80, 6, seed=6, noise=1.0)
    mined = mine(first, second)
    for side in (mined.first, mined.second):
        assert len(set(side.tolist())) == len(side) <= 80
    assert (np.diff(mined.score) <= 0).all()


@pytest.mark.parametrize("name", list(MARGINS))
@pytest.mark.parametrize("k", [1, 4, 40])
def test_the_best_candidate_is_the_one_of_plain_loops_over_all_or_the_nearest(name, k, monkeypatch):
    monkeypatch.setattr(of_margin, "COLUMNS", 16)
    queries, candidates = noisy(60, 6, seed=7, noise=0.8)
    queries = queries[:23]
    for function, among_nearest in ((best_candidates, False), (best_by_margin, True)):
        best = function(queries, candidates, k, name).tolist()
        plain = naive_best(queries.tolist(), candidates.tolist(), k, name, among_nearest)
        assert best == plain
        near = function(queries, candidates, k, "absolute").tolist()
        if k == 4:  # a guard: the margin changes what is found
            assert (best == near) == (name == "absolute")
    if (name, k) == ("ratio", 4):
        assert best_by_margin(queries, candidates).tolist() == best


@pytest.mark.parametrize("columns", [1, 2, 4096])
def test_of_equal_candidates_the_first_is_the_best(columns, monkeypatch):
    monkeypatch.setattr(of_margin, "COLUMNS", columns)
    rows = np.eye(3, dtype=np.float32)[[0, 1, 1, 2, 2]]
    assert best_candidates(rows, rows, 1, "absolute").tolist() == [0, 1, 1, 3, 3]
    for name in MARGINS:
        assert best_by_margin(rows[:2], rows[[0, 0, 1, 1]], 2, name).tolist() == [0, 2]


def test_where_no_neighbourhood_is_above_zero_a_ratio_is_zero_and_prefers_the_nearer():
    first = np.array([[1, 0], [1, 0]], np.float32)
    second = np.array([[0, 1], [-1, 0]], np.float32)
    assert mine(first, second, 2, "ratio").score.tolist() == [0.0]
    assert np.isfinite(mine(first, second, 2, "distance").score).all()
    assert best_by_margin(first[:1], -np.eye(2, dtype=np.float32), 2, "ratio").tolist() == [1]


def test_margins_are_ratio_distance_and_absolute():
    similarity, around = np.array([0.6, -0.2, 0.3]), np.array([0.5, 0.4, -0.1])
    margins = {name: margin(similarity, around) for name, margin in MARGINS.items()}
    assert margins["ratio"] == pytest.approx([1.2, -0.5, 0.0])
    assert margins["distance"] == pytest.approx([0.1, -0.6, 0.4])
    assert margins["absolute"] == pytest.approx([0.6, -0.2, 0.3])
