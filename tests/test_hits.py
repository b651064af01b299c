"""Laws of hits: the interval is the bootstrap's, and the bits come back as they went in."""

import json

import numpy as np
import pytest

from ems.hits import interval, packed, unpacked


@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000])
def test_packed_bits_come_back(count):
    hits = np.random.default_rng(count).random(count) < 0.4
    assert np.array_equal(unpacked(packed(hits), count), hits)
    assert json.loads(json.dumps(packed(hits))) == json.dumps(packed(hits))[1:-1]  # as it is


@pytest.mark.parametrize(("text", "count"), [("AAAA", 8), ("", 1), ("no hits", 40), ("ß", 8)])
def test_text_of_another_length_is_refused(text, count):
    with pytest.raises(ValueError, match=r"bytes|base85|ASCII"):
        unpacked(text, count)


@pytest.mark.parametrize(("right", "count"), [(30, 40), (500, 1000), (3, 1000), (997, 1000)])
def test_the_interval_is_that_of_resampled_sentences(right, count):
    hits = np.arange(count) < right
    random = np.random.default_rng(0)
    means = [100 * hits[random.integers(count, size=count)].mean() for _ in range(20_000)]
    expected = np.quantile(means, [0.025, 0.975])
    assert interval(right, count) == pytest.approx(expected, abs=100 / count + 0.05)


def test_all_or_nothing_has_no_width():
    assert interval(0, 9) == (0, 0)
    assert interval(9, 9) == (100, 100)
