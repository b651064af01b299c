"""Laws of FLORES-200 and of the case study: every direction is what a double loop finds."""

import numpy as np
import pytest
from made.bench import Listed, naive_hits, scored, translated
from made.corpora import write_flores
from made.scores import counts, hits, values

import ems.benchmarks.wordorder.score as case_study
from ems.bench.retrieval import all_directions, nearest_is_own, normalised
from ems.config.languages import load_languages

CODES = {"en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn", "ja": "jpn_Jpan"}
OF_FLORES = {
    "languages": list(CODES),
    "evalsets": {"flores200": {"version": "v1"}},
    "benchmarks": ["flores200"],
}
COUNT = 23


# --- all directions at once


@pytest.mark.parametrize("seed", [0, 5])
def test_every_direction_equals_a_double_loop(seed):
    vectors = translated(COUNT, 4, seed)
    hits = all_directions(np.stack([normalised(each, "x") for each in vectors]))
    assert hits.shape == (4, 4, COUNT)
    for one in range(4):
        assert not hits[one, one].any()
        for other in set(range(4)) - {one}:
            expected = naive_hits(vectors[one].tolist(), vectors[other].tolist())
            assert hits[one, other].tolist() == expected
    shares = hits.mean(axis=2)[~np.eye(4, dtype=bool)]
    assert 0.2 < shares.min() < shares.max() < 0.95
    assert (hits != hits.transpose(1, 0, 2)).any()  # so that a swapped direction would show


def test_of_equal_candidates_only_the_first_can_be_a_hit_in_both_directions():
    corners = np.eye(3, dtype=np.float32)
    sets = [corners[[0, 0, 2]], corners[[0, 1, 1]], corners[[0, 0, 2]]]
    hits = all_directions(np.stack(sets))
    for one, other in ((0, 1), (1, 0), (0, 2), (2, 0)):
        expected = nearest_is_own(sets[one], sets[other]).tolist()
        assert hits[one, other].tolist() == expected
        assert naive_hits(sets[one].tolist(), sets[other].tolist()) == expected
    assert hits[0, 2].tolist() == [True, False, True]


# --- the benchmark


def drawn(languages, count=COUNT, width=6):
    """An encoder that has the vector of each line "<language> <number>"."""
    vectors = translated(count, len(languages), seed=1, width=width)
    return Listed(
        {
            f"{language} {at}": row
            for language, rows in zip(languages, vectors, strict=True)
            for at, row in enumerate(rows)
        }
    )


def write_lines_of(folder, codes, count=COUNT):
    """FLORES-200 with the lines that `drawn` has."""
    for language, code in codes.items():
        write_flores(folder, code, [f"{language} {number}" for number in range(count)])
    return folder / "flores200"


@pytest.fixture
def folder(tmp_path):
    return write_lines_of(tmp_path, CODES)


def run(tmp_path, encoder, folder, **changes):
    return scored(tmp_path, "flores200", folder, encoder, **{**OF_FLORES, **changes})


def test_the_score_file_has_every_ordered_direction_with_english_and_its_hits(tmp_path, folder):
    encoder = drawn(CODES)
    scores = run(tmp_path, encoder, folder)
    assert (scores.metric, scores.version) == ("P@1", "v1")
    assert (scores.higher_is_better, scores.parallel) == (True, True)
    assert counts(scores) == dict.fromkeys(CODES.values(), COUNT)
    assert scores.languages == {code: language for language, code in CODES.items()}
    lines = {language: [f"{language} {at}" for at in range(COUNT)] for language in CODES}
    assert encoder.asked == list(lines.items())  # each once, as itself
    for one, query in CODES.items():
        ways = scores.labelled()[query]
        assert set(ways) == set(CODES.values()) - {query}
        for other, candidates in CODES.items():
            if one != other:
                row = ways[candidates]
                assert (row.source, row.target) == (query, candidates)
                sides = ([encoder.vectors[line] for line in lines[each]] for each in (one, other))
                expected = naive_hits(*sides)
                assert hits(row) == expected
                assert row.value == pytest.approx(100 * sum(expected) / COUNT)


def test_only_languages_that_are_trained_on_are_scored_and_only_devtest(tmp_path):
    codes = {code: entry.flores200 for code, entry in load_languages().items()}
    every = {"flores200": {"version": "v1", "languages": "all"}}
    scores = run(tmp_path, drawn(CODES), write_lines_of(tmp_path, codes), evalsets=every)
    assert set(values(scores)) == set(CODES.values())


def test_the_file_of_62_languages_of_1012_sentences_stays_below_a_megabyte(tmp_path):
    few = {code: entry.flores200 for code, entry in list(load_languages().items())[:10]}
    assert "en" in few
    folder, encoder = write_lines_of(tmp_path, few, 1012), drawn(few, 1012, width=3)
    size = run(tmp_path, encoder, folder, languages=list(few)).path.stat().st_size
    assert 100 < size / (10 * 9) < 1_000_000 / (62 * 61)


# --- the case study


def test_the_case_study_is_the_cosine_of_the_two_sentences_of_the_paper(tmp_path):
    encoder = Listed(dict(zip(case_study.SENTENCES, ([3, 4, 0], [0, 2, 0]), strict=True)))
    file = scored(tmp_path, "wordorder", {}, encoder, benchmarks=["wordorder"])
    assert (file.benchmark, file.metric) == ("wordorder", "cosine")
    assert (file.version, file.higher_is_better) == ("EMS v2 section V-H", False)
    assert len(file.data_sha256) == 16
    (row,) = file.rows
    assert row.value == pytest.approx(0.8)
    assert (row.source, row.target, row.count) == ("en", "en", 2)
    assert encoder.asked == [("en", list(case_study.SENTENCES))]


def test_the_two_sentences_have_the_same_words_but_for_two_forms():
    one, other = ([w.strip("?") for w in line.split()] for line in case_study.SENTENCES)
    assert (len(one), len(other)) == (17, 17)
    assert set(one) ^ set(other) == {"steal", "saved", "save", "stole"}
    assert all(line == line.lower() for line in case_study.SENTENCES)
