"""Laws of the search for the best pairs by CSLS: the pairs and scores are those of plain loops in
float64, whatever the tiles, and the rows that are left out change nothing."""

import numpy as np
import pytest
from made.bench import naive_best_pairs, unit

from ems.bench import margin, nearest
from ems.bench.margin import best_pairs


def related(rows, columns, seed, width=8):
    """Two sets of unit vectors; some of the second are near to some of the first."""
    random = np.random.default_rng(seed)
    first, second = random.normal(size=(rows, width)), random.normal(size=(columns, width))
    shared = min(rows, columns) // 2
    second[:shared] = first[:shared][::-1] + 0.3 * second[:shared]
    return unit(first), unit(second)


def set_tiles(monkeypatch, rows, columns):
    """Other sizes of the tiles of both passes."""
    for module in (margin, nearest):
        monkeypatch.setattr(module, "ROWS", rows)
        monkeypatch.setattr(module, "COLUMNS", columns)
    monkeypatch.setattr(nearest, "GROUP", 4)


def pairs_of(best):
    return list(zip(best.first.tolist(), best.second.tolist(), strict=True))


@pytest.mark.parametrize("tiles", [(8192, 4096), (16, 12)])
@pytest.mark.parametrize("k", [0, 1, 4, 10, 99])
@pytest.mark.parametrize(("rows", "columns", "keep"), [(60, 45, 30), (60, 45, 900), (1, 1, 9)])
def test_the_best_pairs_are_those_of_plain_loops(rows, columns, keep, k, tiles, monkeypatch):
    set_tiles(monkeypatch, *tiles)
    first, second = related(rows, columns, seed=rows + k)
    best = best_pairs(first, second, keep, k)
    exact = (first.astype(np.float64).tolist(), second.astype(np.float64).tolist())
    every = naive_best_pairs(*exact, rows * columns, k)
    assert len(best.score) == len(set(pairs_of(best))) == min(keep, rows * columns)
    assert np.allclose(best.score, [score for score, _, _ in every[:keep]], atol=1e-6)
    scores = {(i, j): score for score, i, j in every}
    assert np.allclose(best.score, [scores[pair] for pair in pairs_of(best)], atol=1e-6)
    cosines = np.einsum("nd,nd->n", first[best.first], second[best.second])
    assert np.allclose(best.similarity, cosines, atol=1e-6)


@pytest.mark.parametrize("change", ["one side", "once"])
def test_each_term_of_the_score_counts(change):
    first, second = (side.astype(np.float64).tolist() for side in related(60, 45, seed=64))
    changed = naive_best_pairs(first, second, 30, 4, change)
    assert [row[1:] for row in changed] != [
        row[1:] for row in naive_best_pairs(first, second, 30, 4)
    ]


def test_rows_that_cannot_be_in_a_best_pair_are_left_out_of_the_second_pass(monkeypatch):
    taken = []
    monkeypatch.setattr(
        margin, "_taken", lambda *each, own=margin._taken: taken.append(each) or own(*each)
    )
    best_pairs(*related(600, 500, seed=5), 40, 10)
    sizes = [len(rows) for _, rows, _ in taken]
    assert len(sizes) == 2
    assert 0 < sizes[0] < 400
    assert 0 < sizes[1] < 350


@pytest.mark.parametrize("keep", [7, 40])
def test_of_equal_pairs_the_first_are_kept(keep, monkeypatch):
    set_tiles(monkeypatch, 8, 4)
    same = np.tile(unit([[3.0, 4.0]]), (20, 1))
    best = best_pairs(same, same[:13], keep, 10)
    assert pairs_of(best) == [divmod(at, 13) for at in range(keep)]
    assert np.allclose(best.score, 0, atol=1e-6)
