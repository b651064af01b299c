"""FLORES-200, xsim, xsim++ and the case study: scores equal plain loops and counts by hand."""

import json

import numpy as np
import pytest
from made.bench import Angles, Listed, error_of, naive_hits, scored, translated
from made.corpora import write_flores, write_lines
from made.experiments import MINIMAL, changed, edited
from made.scores import check_golden, values

import ems.benchmarks.wordorder.score as case_study
from ems.bench import retrieval
from ems.bench.retrieval import all_directions, nearest_is_own, normalised, precision_at_1
from ems.benchmarks.xsim.score import errors_of
from ems.benchmarks.xsimpp.data import AUGMENTED, KINDS, Negative
from ems.config.languages import load_languages

CODES = {"en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn", "ja": "jpn_Jpan"}
OF_FLORES = {
    "languages": list(CODES),
    "evalsets": {"flores200": {"version": "v1"}},
    "benchmarks": ["flores200"],
}
COUNT = 23


@pytest.mark.parametrize(("seed", "block"), [(0, 1024), (5, 1), (5, 7)])
def test_every_direction_equals_a_double_loop(seed, block, monkeypatch):
    monkeypatch.setattr(retrieval, "QUERIES", block)
    vectors = translated(COUNT, 4, seed)
    units = [normalised(each, "x") for each in vectors]
    hits = all_directions(np.stack(units))
    assert hits.shape == (4, 4, COUNT)
    for one in range(4):
        assert not hits[one, one].any()
        for other in set(range(4)) - {one}:
            expected = naive_hits(vectors[one].tolist(), vectors[other].tolist())
            assert hits[one, other].tolist() == expected
            share = precision_at_1(units[one], units[other])
            assert share == pytest.approx(100 * np.mean(expected))
    shares = hits.mean(axis=2)[~np.eye(4, dtype=bool)]
    assert 0.2 < shares.min() < shares.max() < 0.95
    assert (hits != hits.transpose(1, 0, 2)).any()  # so that a swapped direction would show


def test_of_equal_candidates_only_the_first_is_a_hit():
    corners = np.eye(3, dtype=np.float32)
    sets = [corners[[0, 0, 2]], corners[[0, 1, 1]], corners[[0, 0, 2]]]
    hits = all_directions(np.stack(sets))
    for one, other in ((0, 1), (1, 0), (0, 2), (2, 0)):
        expected = nearest_is_own(sets[one], sets[other]).tolist()
        assert hits[one, other].tolist() == expected
        assert naive_hits(sets[one].tolist(), sets[other].tolist()) == expected
    assert hits[0, 2].tolist() == [True, False, True]


def drawn(languages, count=COUNT, width=6):
    vectors = translated(count, len(languages), seed=1, width=width)
    rows = zip(languages, vectors, strict=True)
    return Listed({f"{name} {at}": row for name, own in rows for at, row in enumerate(own)})


def write_lines_of(folder, codes, count=COUNT):
    """FLORES-200 with the lines of `drawn`."""
    for language, code in codes.items():
        write_flores(folder, code, [f"{language} {number}" for number in range(count)])
    return folder / "flores200"


def run(tmp_path, encoder, folder, **changes):
    return scored(tmp_path, "flores200", folder, encoder, **{**OF_FLORES, **changes})


def test_a_score_file_has_every_direction_with_its_hits(tmp_path):
    encoder = drawn(CODES)
    check_golden("flores200.txt", run(tmp_path, encoder, write_lines_of(tmp_path, CODES)).path)
    asked = [(language, [f"{language} {at}" for at in range(COUNT)]) for language in CODES]
    assert encoder.asked == asked  # each once, as itself


def test_only_trained_languages_are_scored(tmp_path):
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


def test_the_case_study_is_the_cosine_of_the_two_sentences_of_the_paper(tmp_path):
    encoder = Listed(dict(zip(case_study.SENTENCES, ([3, 4, 0], [0, 2, 0]), strict=True)))
    scores = scored(tmp_path, "wordorder", {}, encoder, benchmarks=["wordorder"])
    check_golden("wordorder.txt", scores.path)
    assert encoder.asked == [("en", list(case_study.SENTENCES))]


def test_the_sentences_of_the_case_study_differ_in_two_words():
    one, other = ([w.strip("?") for w in line.split()] for line in case_study.SENTENCES)
    assert (len(one), len(other)) == (17, 17)
    assert set(one) ^ set(other) == {"steal", "saved", "save", "stole"}
    assert all(line == line.lower() for line in case_study.SENTENCES)


# --- xsim and xsim++, by hand

ENGLISH = {"One.": 0, "Two.": 90, "Three.": 180, "Four.": 270}  # sentence -> its angle, degrees
GERMAN = {"Eins.": 12, "Zwei.": 91, "Drei.": 195, "Vier.": 25}
ALTERED = {"Not one.": 20, "Two of 3.": 120, "Nobody knows.": 200}
ALTERATIONS = {
    "Not one.": {"errtype": "causality_alternation", "src": "One."},
    "Two of 3.": {"errtype": "number_replacement", "src": "Two."},
}
# By cosine, Eins (12) is nearest to One (12 away), in xsim++ to Not one (8 away), altered from One;
# Zwei to Two; Drei (195) to Three (15 away), in xsim++ to Nobody knows (5 away), of unknown kind;
# Vier (25) to One (25 away), in xsim++ to Not one (5 away), which does not come from Four.
OF_XSIM = {
    "languages": ["en", "de"],
    "evalsets": {
        "flores200": {"version": "v1", "protocol": {"margin": "absolute"}},
        "xsimpp": {"version": "v2"},
    },
    "benchmarks": ["xsim", "xsimpp"],
}


@pytest.fixture
def folders(tmp_path):
    write_flores(tmp_path, "eng_Latn", ENGLISH)
    write_flores(tmp_path, "deu_Latn", GERMAN)
    write_lines(tmp_path / "xsimpp" / AUGMENTED, ALTERED)
    (tmp_path / "xsimpp" / KINDS).write_text(json.dumps(ALTERATIONS))
    return {name: tmp_path / name for name in ("flores200", "xsimpp")}


def call(function, tmp_path, folders, benchmark, encoder=None):
    """Score, or return the error, with the altered sentences in the user's own folder."""
    base = edited(changed(MINIMAL, OF_XSIM), "evalsets.xsimpp.path", str(tmp_path / "xsimpp"))
    encoder = encoder or Angles({**ENGLISH, **GERMAN, **ALTERED})
    return function(tmp_path, benchmark, folders, encoder, base=base)


@pytest.mark.parametrize("benchmark", ["xsim", "xsimpp"])
def test_errors_and_their_kinds_are_those_counted_by_hand(tmp_path, folders, benchmark):
    encoder = Angles({**ENGLISH, **GERMAN, **ALTERED})
    check_golden(f"{benchmark}.txt", call(scored, tmp_path, folders, benchmark, encoder).path)
    english = [*ENGLISH, *(ALTERED if benchmark == "xsimpp" else ())]
    assert encoder.asked == [("en", english), ("de", list(GERMAN))]


def test_the_right_text_counts_on_any_line_and_an_alteration_of_it_does_not():
    english = ["a", "a ", "b"]
    made = [Negative("c", "kind", "a"), Negative("b", "kind", "a"), Negative("d", "", "b")]
    assert errors_of(np.array([1, 0, 4]), english, made) == ["", "", ""]
    assert errors_of(np.array([3, 4, 5]), english, made) == ["kind", "kind", "untold"]
    assert errors_of(np.array([2, 5, 3]), english, made) == ["misaligned"] * 3


def test_both_evaluation_sets_of_xsimpp_are_in_the_checksum(tmp_path, folders):
    sums = [call(scored, tmp_path, folders, "xsimpp").data_sha256 for _ in range(2)]
    write_lines(folders["xsimpp"] / AUGMENTED, reversed(ALTERED))
    sums.append(call(scored, tmp_path, folders, "xsimpp").data_sha256)
    write_flores(tmp_path, "deu_Latn", reversed(GERMAN))
    sums.append(call(scored, tmp_path, folders, "xsimpp").data_sha256)
    assert (sums[0] == sums[1], len(set(sums))) == (True, 3)


@pytest.mark.parametrize("benchmark", ["xsim", "xsimpp"])
def test_an_error_names_both_files_with_unequal_numbers_of_lines(tmp_path, folders, benchmark):
    path = write_flores(tmp_path, "deu_Latn", ["Eins."])
    english = path.with_name("eng_Latn.devtest")
    message = call(error_of, tmp_path, folders, benchmark)
    assert message.startswith(f"{path}: expected the 4 lines of {english}, found 1; ")
