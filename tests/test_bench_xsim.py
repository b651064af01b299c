"""Laws of xsim and xsim++: errors and their kinds are those counted by hand."""

import json

import numpy as np
import pytest
from made.bench import Angles, error_of, scored
from made.corpora import write_flores, write_lines
from made.experiments import MINIMAL, Settings, changed, edited
from made.scores import hits

from ems.base.schema import plain
from ems.benchmarks.xsim.score import errors_of
from ems.benchmarks.xsimpp.data import AUGMENTED, KINDS, Negative

# --- by hand

ENGLISH = {"One.": 0, "Two.": 90, "Three.": 180, "Four.": 270}  # sentence -> its angle, degrees
GERMAN = {"Eins.": 12, "Zwei.": 91, "Drei.": 195, "Vier.": 25}
MADE = {"Not one.": 20, "Two of 3.": 120, "Nobody knows.": 200}
TOLD = {
    "Not one.": {"errtype": "causality_alternation", "src": "One."},
    "Two of 3.": {"errtype": "number_replacement", "src": "Two."},
}
# By hand, by cosine: Eins (12) is nearest to One (12 away), with the made ones to Not one (8 away),
# which is made of One; Zwei to Two; Drei (195) to Three (15 away), or to the one (5 away) of which
# no kind is told; Vier (25) to One (25 away), or to Not one (5 away), made of another than Four.
OF_XSIM = {
    "languages": ["en", "de"],
    "evalsets": {
        "flores200": {"version": "v1", "protocol": {"margin": "absolute"}},
        "xsimpp": {"version": "v2"},
    },
    "benchmarks": ["xsim", "xsimpp"],
}
BASE = MINIMAL | {**OF_XSIM, "languages": ["en", "de", "fr"], "decontaminate": {"against": []}}
WITHOUT_PROTOCOL = ("evalsets.flores200", {"version": "v1"})


@pytest.fixture
def folders(tmp_path):
    """Both sets as they are published."""
    write_flores(tmp_path, "eng_Latn", ENGLISH)
    write_flores(tmp_path, "deu_Latn", GERMAN)
    write_lines(tmp_path / "xsimpp" / AUGMENTED, MADE)
    (tmp_path / "xsimpp" / KINDS).write_text(json.dumps(TOLD))
    return {name: tmp_path / name for name in ("flores200", "xsimpp")}


def call(tmp_path, folders, benchmark, encoder=None, **changes):
    """The arguments that score; the made sentences are a copy of the user's."""
    base = edited(changed(MINIMAL, OF_XSIM), "evalsets.xsimpp.path", str(tmp_path / "xsimpp"))
    encoder = encoder or Angles({**ENGLISH, **GERMAN, **MADE})
    return (tmp_path, benchmark, folders, encoder), {"base": base, **changes}


def run(*arguments, **changes):
    arguments, changes = call(*arguments, **changes)
    return scored(*arguments, **changes)


def refused(*arguments):
    arguments, changes = call(*arguments)
    return error_of(*arguments, **changes)


def test_xsim_is_the_error_rate_counted_by_hand(tmp_path, folders):
    encoder = Angles({**ENGLISH, **GERMAN})
    scores = run(tmp_path, folders, "xsim", encoder)
    assert (scores.benchmark, scores.metric) == ("xsim", "error rate")
    assert (scores.higher_is_better, scores.parallel) == (False, True)
    assert (scores.version, scores.protocol) == ("v1", {"k": 4, "margin": "absolute"})
    assert scores.languages == {"deu_Latn": "de", "eng_Latn": "en"}
    (row,) = scores.rows  # no kinds of errors
    assert scores.labelled() == {"deu_Latn": {"to_english": row}}
    assert (row.source, row.target, row.value) == ("deu_Latn", "eng_Latn", 25.0)
    assert hits(row) == [False, False, False, True]  # of each whether it is an error
    (written,) = json.loads(scores.path.read_text())["rows"]
    assert written["interval"][0] <= 25.0 <= written["interval"][1]
    assert encoder.asked == [("en", list(ENGLISH)), ("de", list(GERMAN))]


def test_xsimpp_counts_the_kinds_of_errors_as_by_hand(tmp_path, folders):
    encoder = Angles({**ENGLISH, **GERMAN, **MADE})
    scores = run(tmp_path, folders, "xsimpp", encoder)
    assert (scores.benchmark, scores.version) == ("xsimpp", "v1, v2")
    (row, *shares) = scores.rows
    assert (row.measure, row.value) == ("", 75.0)
    assert hits(row) == [True, False, True, True]
    assert {share.measure: share.value for share in shares} == {
        "causality_alternation": 25.0,  # of the sentences: they add up to the error rate
        "misaligned": 50.0,
        "number_replacement": 0.0,
        "untold": 0.0,
    }
    assert {(share.direction, share.count, share.hits) for share in shares} == {
        ("deu_Latn-eng_Latn", 4, "")
    }
    assert encoder.asked[0] == ("en", [*ENGLISH, *MADE])


def test_the_same_text_on_another_line_is_found_and_its_own_made_sentence_is_not():
    english = ["a", "a ", "b"]
    made = [Negative("c", "kind", "a"), Negative("b", "kind", "a"), Negative("d", "", "b")]
    assert errors_of(np.array([1, 0, 4]), english, made) == ["", "", ""]
    assert errors_of(np.array([3, 4, 5]), english, made) == ["kind", "kind", "untold"]
    assert errors_of(np.array([2, 5, 3]), english, made) == ["misaligned"] * 3


def test_the_default_is_the_ratio_margin_with_four_neighbours(tmp_path, folders):
    experiment = Settings(tmp_path / "settings").load(edited(BASE, *WITHOUT_PROTOCOL))
    assert plain(experiment.evalsets["flores200"].protocol) == {"k": 4, "margin": "ratio"}
    changes = {"flores200": {"protocol": {"margin": "ratio"}}}
    scores = run(tmp_path, folders, "xsim", evalsets=changes)
    assert scores.protocol == {"k": 4, "margin": "ratio"}


def test_the_same_inputs_give_the_same_bytes_and_either_set_counts_for_the_checksum(
    tmp_path, folders
):
    first = run(tmp_path, folders, "xsimpp")
    content, sums = first.path.read_bytes(), {first.data_sha256}
    assert run(tmp_path, folders, "xsimpp").path.read_bytes() == content
    write_lines(folders["xsimpp"] / AUGMENTED, reversed(MADE))
    sums.add(run(tmp_path, folders, "xsimpp").data_sha256)
    write_flores(tmp_path, "deu_Latn", reversed(GERMAN))
    sums.add(run(tmp_path, folders, "xsimpp").data_sha256)
    assert len(sums) == 3


@pytest.mark.parametrize("benchmark", ["xsim", "xsimpp"])
def test_unequal_lines_are_an_error_that_names_both_files(tmp_path, folders, benchmark):
    path = write_flores(tmp_path, "deu_Latn", ["Eins."])
    english = path.with_name("eng_Latn.devtest")
    message = refused(tmp_path, folders, benchmark)
    assert message.startswith(f"{path}: expected the 4 lines of {english}, found 1; ")


def test_a_set_that_is_not_given_is_an_error_that_says_how_to_give_it(tmp_path, folders):
    message = refused(tmp_path, {"flores200": folders["flores200"]}, "xsimpp")
    assert "xsimpp: the folder of xsimpp is not given; " in message
    assert "NAME=FOLDER" in message


# --- benchmarks that are of another set

MISTAKES = [
    ("evalsets", {"xsimpp": {"version": "v1"}}, "benchmarks: xsim reads flores200, which has no"),
    ("evalsets", {"flores200": {"version": "v1"}}, "benchmarks: xsimpp has no entry under"),
    (
        "evalsets.flores200.languages",
        ["de", "fr"],
        "systems.ems: xsim needs en and another of its languages in flores200, found de, fr; see "
        "evalsets.flores200.languages",
    ),
    (
        "evalsets.flores200.protocol.margin",
        "ration",
        "protocol.margin: found 'ration'; allowed values: ratio, distance, absolute",
    ),
    ("evalsets.flores200.protocol.k", 0, "evalsets.flores200.protocol.k: 0"),
    ("evalsets.flores200.protocol.n", 4, "evalsets.flores200.protocol.n: unknown key"),
    ("evalsets.xsimpp.protocol", {}, "evalsets.xsimpp.protocol: only "),
]


@pytest.mark.parametrize(("path", "new", "message"), MISTAKES)
def test_a_mistake_is_one_line_before_any_job(tmp_path, path, new, message):
    assert message in Settings(tmp_path, BASE).error(edited(BASE, path, new))


def test_flores_needs_two_languages_that_a_system_is_trained_on(tmp_path):
    value = edited(BASE, "benchmarks", ["flores200"])
    project = Settings(tmp_path, value)
    message = project.error(edited(value, "evalsets.flores200.languages", ["fr"]))
    assert (
        "systems.ems: flores200 needs two of its languages in flores200, found fr; see" in message
    )
    assert project.load(edited(value, "evalsets.flores200.languages", ["fr", "de"]))
