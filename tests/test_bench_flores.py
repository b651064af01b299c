"""Laws of FLORES-200 and of the case study: every direction is what a double loop finds."""

import json
import math

import numpy as np
import pytest
from experiments_made import MINIMAL, Settings, changed
from mirror_made import write_flores
from results_made import counts, hits, values

import ems.benchmarks.wordorder.score as case_study
from ems.bench.registry import evaluate
from ems.errors import EmsError
from ems.languages import load_languages
from ems.retrieval import all_directions, nearest_is_own, normalised
from ems.scores import read_score_file

CODES = {"en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn", "ja": "jpn_Jpan"}
OF_FLORES = {
    "languages": list(CODES),
    "evalsets": {"flores200": {"version": "v1"}},
    "benchmarks": ["flores200"],
}
ALL = {"version": "v1", "languages": "all"}
COUNT = 23


def naive_hits(queries, candidates):
    """Of each query whether its own counterpart has the highest cosine: loops, plain floats."""
    found = []
    for at, query in enumerate(queries):
        best, best_score = None, -math.inf
        for other, candidate in enumerate(candidates):
            product = sum(a * b for a, b in zip(query, candidate, strict=True))
            lengths = math.sqrt(sum(a * a for a in query) * sum(b * b for b in candidate))
            if product / lengths > best_score:
                best, best_score = other, product / lengths
        found.append(best == at)
    return found


def drawn(count, languages, seed, noise=0.5, width=6):
    """float32[languages, count, width]: the same sentences in each language, with noise, of very
    unequal lengths, so that cosine is not a dot product."""
    random = np.random.default_rng(seed)
    meaning = random.normal(size=(count, width))
    each = meaning + noise * random.normal(size=(languages, count, width))
    return (each * random.uniform(0.1, 9, size=(languages, count, 1))).astype(np.float32)


# --- all directions at once


@pytest.mark.parametrize("seed", [0, 5])
def test_every_direction_equals_a_double_loop(seed):
    vectors = drawn(COUNT, 4, seed)
    found = all_directions(np.stack([normalised(each, "x") for each in vectors]))
    assert found.shape == (4, 4, COUNT)
    for one in range(4):
        assert not found[one, one].any()
        for other in set(range(4)) - {one}:
            expected = naive_hits(vectors[one].tolist(), vectors[other].tolist())
            assert found[one, other].tolist() == expected
    shares = found.mean(axis=2)[~np.eye(4, dtype=bool)]
    assert 0.2 < shares.min() < shares.max() < 0.95
    assert (found != found.transpose(1, 0, 2)).any()  # so that a swapped direction would show


def test_of_equal_candidates_only_the_first_can_be_a_hit_in_both_directions():
    corners = np.eye(3, dtype=np.float32)
    first, second = corners[[0, 0, 2]], corners[[0, 1, 1]]
    found = all_directions(np.stack([first, second, first]))
    for one, other in ((0, 1), (1, 0), (0, 2), (2, 0)):
        sets = [first, second, first]
        expected = nearest_is_own(sets[one], sets[other]).tolist()
        assert found[one, other].tolist() == expected
        assert naive_hits(sets[one].tolist(), sets[other].tolist()) == expected
    assert found[0, 2].tolist() == [True, False, True]


# --- the benchmark


class Drawn:
    """Knows the vector of each line "<language> <number>" and writes down what it was asked."""

    def __init__(self, languages, count=COUNT, seed=1, width=6):
        vectors = drawn(count, len(languages), seed, width=width)
        self.vectors = dict(zip(languages, vectors, strict=True))
        self.asked = []

    def encode(self, lines, language, what="encode"):
        self.asked.append((language, len(lines)))
        names = [line.split() for line in lines]
        return np.stack([self.vectors[name][int(number)] for name, number in names])


def write_lines_of(folder, codes, count=COUNT):
    """FLORES-200 with the lines that `Drawn` knows."""
    for language, code in codes.items():
        write_flores(folder, code, [f"{language} {number}" for number in range(count)])
    return folder / "flores200"


def run(tmp_path, encoder, folder, **changes):
    """The written file of the benchmark flores200."""
    out = tmp_path / "scores" / "flores200.json"
    experiment = Settings(tmp_path / "settings").changed(**{**OF_FLORES, **changes})
    evaluate(encoder, experiment, {"system": "ems", "benchmark": "flores200"}, folder, out)
    return out


def test_the_score_file_has_every_ordered_direction_with_english_and_its_hits(tmp_path):
    encoder = Drawn(CODES)
    scores = read_score_file(run(tmp_path, encoder, write_lines_of(tmp_path, CODES)))
    assert (scores.metric, scores.version) == ("P@1", "v1")
    assert (scores.higher_is_better, scores.parallel) == (True, True)
    assert counts(scores) == dict.fromkeys(CODES.values(), COUNT)
    assert scores.languages == {code: language for language, code in CODES.items()}
    for one, query in CODES.items():
        ways = scores.labelled()[query]
        assert set(ways) == set(CODES.values()) - {query}
        for other, candidates in CODES.items():
            if one != other:
                row = ways[candidates]
                assert (row.source, row.target) == (query, candidates)
                expected = naive_hits(encoder.vectors[one], encoder.vectors[other])
                assert hits(row) == expected
                assert row.value == pytest.approx(100 * sum(expected) / COUNT)


def test_each_language_is_encoded_once_as_itself(tmp_path):
    encoder = Drawn(CODES)
    run(tmp_path, encoder, write_lines_of(tmp_path, CODES))
    assert encoder.asked == [(language, COUNT) for language in CODES]


def test_only_languages_that_are_trained_on_are_scored_and_only_devtest(tmp_path):
    codes = {code: entry.flores200 for code, entry in load_languages().items()}
    folder = write_lines_of(tmp_path, codes)
    encoder = Drawn(CODES)
    out = run(tmp_path, encoder, folder, evalsets={"flores200": ALL})
    assert set(values(read_score_file(out))) == set(CODES.values())


def test_the_same_inputs_give_the_same_bytes_and_other_data_another_checksum(tmp_path):
    folder = write_lines_of(tmp_path, CODES)
    first = run(tmp_path, Drawn(CODES), folder).read_bytes()
    assert run(tmp_path, Drawn(CODES), folder).read_bytes() == first
    (folder / "devtest/jpn_Jpan.devtest").write_text("ja 3\n" * COUNT)
    again = json.loads(run(tmp_path, Drawn(CODES), folder).read_text())
    assert again["data_sha256"] != json.loads(first)["data_sha256"]
    assert again["system_hash"] == json.loads(first)["system_hash"]


def test_the_file_of_62_languages_of_1012_sentences_stays_below_a_megabyte(tmp_path):
    few = dict(list({c: e.flores200 for c, e in load_languages().items()}.items())[:10])
    assert "en" in few
    folder, encoder = write_lines_of(tmp_path, few, 1012), Drawn(few, 1012, width=3)
    size = run(tmp_path, encoder, folder, languages=list(few)).stat().st_size
    assert 100 < size / (10 * 9) < 1_000_000 / (62 * 61)


def error_of(tmp_path, encoder, folder):
    with pytest.raises(EmsError) as caught:
        run(tmp_path, encoder, folder)
    assert not (tmp_path / "scores").exists()
    return str(caught.value)


def test_languages_of_unequal_length_are_an_error_that_names_both_files(tmp_path):
    folder = write_lines_of(tmp_path, CODES)
    write_flores(tmp_path, "fra_Latn", ["fr 1", "fr 2"])
    message = error_of(tmp_path, Drawn(CODES), folder)
    assert message.startswith(f"{folder}/devtest/fra_Latn.devtest: expected the 23 lines of ")
    assert "eng_Latn.devtest, found 2; every language has the same sentences" in message


@pytest.mark.parametrize(
    ("lines", "told"),
    [(["de 1", "", "de 3"], "deu_Latn.devtest: line 2 is empty"), (None, "deu_Latn.devtest")],
)
def test_a_bad_or_missing_file_is_an_error_that_names_it(tmp_path, lines, told):
    folder = write_lines_of(tmp_path, CODES)
    if lines:
        write_flores(tmp_path, "deu_Latn", lines)
    else:
        (folder / "devtest/deu_Latn.devtest").unlink()
    assert told in error_of(tmp_path, Drawn(CODES), folder)


def test_a_vector_that_is_not_finite_is_an_error_that_names_the_sentence(tmp_path):
    encoder = Drawn(CODES)
    encoder.vectors["ja"][4] = math.nan
    message = error_of(tmp_path, encoder, write_lines_of(tmp_path, CODES))
    assert message == "flores200 jpn_Jpan: the embedding of sentence 5 is zero or not finite"


# --- the case study


class Two:
    """Two vectors for two lines."""

    def __init__(self, *vectors):
        self.vectors, self.asked = np.array(vectors, np.float32), []

    def encode(self, lines, language, what="encode"):
        self.asked.append((language, lines))
        return self.vectors


def case(tmp_path, encoder):
    out = tmp_path / "wordorder.json"
    value = changed(MINIMAL, {"evalsets": {"tatoeba": {"version": "toy"}}})
    experiment = Settings(tmp_path / "settings", value).changed(benchmarks=["wordorder"])
    evaluate(encoder, experiment, {"system": "ems", "benchmark": "wordorder"}, {}, out)
    return out


def test_the_case_study_is_the_cosine_of_the_two_sentences_of_the_paper(tmp_path):
    encoder = Two([3, 4, 0], [0, 2, 0])
    out = case(tmp_path, encoder)
    scores = json.loads(out.read_text())
    assert (scores["benchmark"], scores["metric"]) == ("wordorder", "cosine")
    assert scores["version"] == "EMS v2 section V-H"
    assert len(scores["data_sha256"]) == 16
    assert not scores["higher_is_better"]
    (row,) = read_score_file(out).rows
    assert row.value == pytest.approx(0.8)
    assert (row.source, row.target, row.count) == ("en", "en", 2)
    ((language, lines),) = encoder.asked
    assert (language, lines) == ("en", list(case_study.SENTENCES))
    first = out.read_bytes()
    assert case(tmp_path, encoder).read_bytes() == first


def test_the_two_sentences_have_the_same_words_but_for_two_forms():
    one, other = ([w.strip("?") for w in line.split()] for line in case_study.SENTENCES)
    assert (len(one), len(other)) == (17, 17)
    assert set(one) ^ set(other) == {"steal", "saved", "save", "stole"}
    assert all(line == line.lower() for line in case_study.SENTENCES)
