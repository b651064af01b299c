"""Laws of margin mining: scores and pairs are those of plain loops (Artetxe and Schwenk 2019)."""

import numpy as np
import pytest
from bench_made import naive_best, naive_mine, noisy

from ems.bench import margin as of_margin
from ems.bench import nearest
from ems.bench.margin import MARGINS, best_by_margin, best_candidates, mine


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
    found = as_list(mine(first, second, k, name))
    expected = naive_mine(first.tolist(), second.tolist(), k, name)
    assert [pair[1:] for pair in found] == [pair[1:] for pair in expected]
    assert [pair[0] for pair in found] == pytest.approx([pair[0] for pair in expected], abs=1e-5)


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
        found = function(queries, candidates, k, name).tolist()
        plain = naive_best(queries.tolist(), candidates.tolist(), k, name, among_nearest)
        assert found == plain
        near = function(queries, candidates, k, "absolute").tolist()
        if k == 4:  # a guard: the margin changes what is found
            assert (found == near) == (name == "absolute")
    if (name, k) == ("ratio", 4):
        assert best_by_margin(queries, candidates).tolist() == found


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
    found = {name: margin(similarity, around) for name, margin in MARGINS.items()}
    assert found["ratio"] == pytest.approx([1.2, -0.5, 0.0])
    assert found["distance"] == pytest.approx([0.1, -0.6, 0.4])
    assert found["absolute"] == pytest.approx([0.6, -0.2, 0.3])
