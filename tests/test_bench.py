"""Laws of retrieval: P@1 is what a double loop finds, the score file says what was scored."""

import json
import math
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from made.bench import Angles, error_of, naive_hits, scored, translated
from made.corpora import DOCUMENTS, write_divided, write_opus, write_tatoeba
from made.experiments import MINIMAL, TRAINING_FREE, Settings, edited
from made.scores import counts, hits, values

from ems import __version__
from ems.base.errors import EmsError
from ems.bench import retrieval, task
from ems.bench.retrieval import normalised, precision_at_1
from ems.config.languages import load_tatoeba_codes
from ems.config.stages import stage_hash
from ems.corpora.split import part_of_line

# --- P@1


@pytest.mark.parametrize("block", [1, 7, 50, 64, 1024])
@pytest.mark.parametrize("seed", [0, 3, 11])
def test_precision_at_1_equals_a_double_loop(seed, block, monkeypatch):
    monkeypatch.setattr(retrieval, "QUERIES", block)
    first, second = translated(50, 2, seed, width=8)
    one, other = normalised(first, "one"), normalised(second, "other")
    there = 2 * sum(naive_hits(first.tolist(), second.tolist()))
    back = 2 * sum(naive_hits(second.tolist(), first.tolist()))
    assert precision_at_1(one, other) == pytest.approx(there)
    assert precision_at_1(other, one) == pytest.approx(back)
    assert 5 < there < 95
    assert there != back  # so that a swapped direction would show


def test_of_equal_candidates_only_the_first_can_be_a_hit():
    rows = np.eye(3, dtype=np.float32)[[0, 0, 2]]
    assert precision_at_1(rows, rows) == pytest.approx(200 / 3)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_vector_without_a_direction_is_an_error_that_names_the_sentence(value):
    vectors = np.ones((5, 3), np.float32)
    vectors[3] = value
    with pytest.raises(EmsError, match=r"tatoeba de: the embedding of sentence 4 is zero or not"):
        normalised(vectors, "tatoeba de")


# --- Tatoeba

SENTENCES = {  # each side's sentences with the angle of their vectors, in degrees
    "deu": ({"Eins.": 0, "Zwei.": 50, "Drei.": 200}, {"One.": 10, "Two.": 100, "Three.": 210}),
    "fra": ({"Un.": 0, "Deux.": 90}, {"Hello.": 80, "World.": 95}),
}
# By hand: Zwei (50) is nearer to One (40 away) than to Two (50 away), all else of deu hits;
# Hello (80) is nearer to Deux (10 away) than to Un, all else of fra hits.
HITS = {
    "deu": {"to_english": [True, False, True], "from_english": [True, True, True]},
    "fra": {"to_english": [True, True], "from_english": [False, True]},
}


@pytest.fixture
def encoder():
    sides = [side for both in SENTENCES.values() for side in both]
    return Angles({text: angle for side in sides for text, angle in side.items()})


@pytest.fixture
def folder(tmp_path):
    """The benchmark as LASER ships it: two files per language."""
    for code, sides in SENTENCES.items():
        write_tatoeba(tmp_path, code, list(zip(*sides, strict=True)))
    return tmp_path / "tatoeba"


def test_the_scores_are_the_ones_counted_by_hand(folder, tmp_path, encoder):
    read = scored(tmp_path, "tatoeba", folder, encoder)
    scores = json.loads(read.path.read_text())
    header = {"benchmark", "version", "system", "system_hash", "data_sha256", "versions"}
    measured = {"metric", "higher_is_better", "label", "parallel", "languages", "rows"}
    assert set(scores) == header | measured | {"protocol", "details", "data_files"}
    fields = [scores[key] for key in ("benchmark", "version", "metric", "system")]
    assert fields == ["tatoeba", "toy", "P@1", "ems"]
    assert scores["languages"] == {"deu": "de", "fra": "fr"}
    assert (scores["higher_is_better"], scores["parallel"]) == (True, False)
    places = [(row["source"], row["target"]) for row in scores["rows"]]
    assert places == [("deu", "en"), ("en", "deu"), ("fra", "en"), ("en", "fra")]
    for row in scores["rows"]:
        assert set(row) == {"source", "target", "value", "count", "hits", "interval"}
        low, high = row["interval"]
        assert 0 <= low <= row["value"] <= high <= 100
    assert counts(read) == {"deu": 3, "fra": 2}
    for code, ways in read.labelled().items():
        assert {way: hits(row) for way, row in ways.items()} == HITS[code]
        assert values(read)[code] == pytest.approx({w: 100 * np.mean(HITS[code][w]) for w in ways})
    assert encoder.asked == [  # each side as its own language
        (spoken, list(side))
        for code, language in (("deu", "de"), ("fra", "fr"))
        for spoken, side in zip((language, "en"), SENTENCES[code], strict=True)
    ]


def test_only_the_languages_that_the_experiment_names_are_scored(folder, tmp_path, encoder):
    chosen = {"tatoeba": {"version": "toy", "languages": ["fr"]}}
    assert list(values(scored(tmp_path, "tatoeba", folder, encoder, evalsets=chosen))) == ["fra"]


def test_the_score_file_tells_which_data_and_which_system_it_is_of(folder, tmp_path, encoder):
    def hashes(**changes):
        path = scored(tmp_path, "tatoeba", folder, encoder, **changes).path
        scores = json.loads(path.read_text())
        return path.read_bytes(), scores["data_sha256"], scores["system_hash"]

    whole, data, system = hashes()
    assert hashes() == (whole, data, system)  # the same inputs give the same bytes
    assert hashes(train={"steps": 2})[1] == data
    assert hashes(train={"steps": 2})[2] != system
    assert hashes(system="ngram")[2] != system
    assert hashes(description="other words", tables={"printed": ["EMS"]})[1:] == (data, system)
    (folder / "tatoeba.fra-eng.eng").write_text("World.\nHello.\n")
    assert hashes()[1] != data
    assert hashes()[2] == system


def test_a_checkout_that_is_not_installed_is_scored_too(folder, tmp_path, encoder, monkeypatch):
    def installed(name):
        if name == "ems":
            raise PackageNotFoundError(name)
        return f"{name}'s"

    monkeypatch.setattr(task, "version", installed)
    scores = json.loads(scored(tmp_path, "tatoeba", folder, encoder).path.read_text())
    assert scores["versions"] == {"ems": __version__, "numpy": "numpy's", "torch": "torch's"}


@pytest.mark.parametrize(("text", "where"), [("Deux.", "fra"), ("World.", "fra, English")])
def test_a_vector_that_is_not_finite_is_an_error_that_names_the_sentence(
    text, where, folder, tmp_path, encoder
):
    encoder.vectors[text] = math.nan
    message = error_of(tmp_path, "tatoeba", folder, encoder)
    assert message.startswith(f"tatoeba {where}: the embedding of sentence 2")


# --- languages that the experiment does not train on


class Listener:
    """An encoder that writes down what it was asked and has one vector a line."""

    def __init__(self):
        self.asked = {}

    def encode(self, lines, language, what="encode"):
        self.asked.setdefault(language, []).append(lines)
        return np.eye(len(lines), dtype=np.float32)


def test_an_unseen_language_is_und_in_the_file_and_for_the_encoder(tmp_path):
    codes = load_tatoeba_codes()
    for code in codes:
        write_tatoeba(tmp_path, code, [(f"{code} {at}", f"of {code} {at}") for at in range(3)])
    encoder, every = Listener(), {"tatoeba": {"languages": "all"}}
    scores = scored(tmp_path, "tatoeba", tmp_path / "tatoeba", encoder, evalsets=every)
    assert len(values(scores)) == len(scores.languages) == 112
    seen = {"deu": "de", "fra": "fr"}
    assert scores.languages == {code: seen.get(code, "und") for code in codes}
    unseen = [[f"{code} {at}" for at in range(3)] for code in codes if code not in seen]
    assert sorted(encoder.asked["und"]) == sorted(unseen)
    assert encoder.asked["de"] == [["deu 0", "deu 1", "deu 2"]]
    assert len(encoder.asked["en"]) == 112


# --- NTREX

DIVISION = {"NTREX": {"documents": DOCUMENTS, "parts": {"train": 0.5, "test": 0.5}}}
NEWS = [{"de": f"Satz {at}", "fr": f"phrase {at}", "en": f"line {at}"} for at in range(40)]
PAPERS = [f"paper.{at // 4}" for at in range(40)]


def of_ntrex(tmp_path, folder, encoder, entry, **changes):
    changes |= {"evalsets": {"ntrex": entry}, "benchmarks": ["ntrex"]}
    return scored(tmp_path, "ntrex", folder, encoder, **changes)


def test_the_whole_of_ntrex_is_scored_when_it_is_not_divided(tmp_path):
    folder, encoder = write_opus(tmp_path, "NTREX", "v1", NEWS), Listener()
    scores = of_ntrex(tmp_path, folder, encoder, {"version": "v1"})
    assert (scores.benchmark, scores.version, scores.parallel) == ("ntrex", "v1", True)
    assert counts(scores) == {"de": 40, "fr": 40}
    assert encoder.asked["fr"] == [[item["fr"] for item in NEWS]]


def test_of_a_divided_ntrex_only_the_documents_of_the_part_are_scored(tmp_path):
    folder = write_divided(tmp_path, "NTREX", "v1", NEWS, PAPERS)
    part = part_of_line(PAPERS, DIVISION["NTREX"]["parts"])
    tested = [item for item, name in zip(NEWS, part, strict=True) if name == "test"]
    assert 15 < len(tested) < 25
    encoder, entry = Listener(), {"version": "v1", "part": "test"}
    scores = of_ntrex(tmp_path, folder, encoder, entry, splits=DIVISION)
    written = json.loads(scores.path.read_text())
    assert scores.version == "v1+test"
    assert counts(scores) == {"de": len(tested), "fr": len(tested)}
    assert encoder.asked == {
        code: [[item[code] for item in tested]] * times
        for code, times in (("de", 1), ("en", 2), ("fr", 1))
    }
    (folder / DOCUMENTS).write_text("".join(f"{name}\n" for name in ["other", *PAPERS[1:]]))
    of_ntrex(tmp_path, folder, Listener(), entry, splits=DIVISION)
    again = json.loads(scores.path.read_text())
    assert again["data_sha256"] != written["data_sha256"]
    assert again["system_hash"] == written["system_hash"]


# --- what makes a benchmark run again

SETS = {
    **{"tatoeba": "toy", "flores200": "v1", "xsimpp": "v1", "bucc2018": "v2018"},
    **{"paracrawl": "v5", "sib200": "v1", "counterfactual": "v1"},
}
HASHED = MINIMAL | {
    "evalsets": {name: {"version": version} for name, version in SETS.items()},
    "benchmarks": [*SETS, "xsim", "wordorder"],
    "decontaminate": {"against": []},
    "systems": {"ems": {}, "ngram": TRAINING_FREE},
}
OF_FLORES = {"flores200", "xsim", "xsimpp"}
PROTOCOLS = {  # of a set, what it is by default and changes of it
    "bucc2018": (
        {"k": 4, "margin": "ratio", "threshold": "oracle", "missed": 10},
        {"k": 5, "margin": "distance", "threshold": "sample", "missed": 1},
    ),
    "paracrawl": (
        {"queries": 2000, "seed": 1234, "k": 4, "margin": "ratio"},
        {"queries": 5, "candidates": 3000, "seed": 1, "margin": "absolute", "k": 3},
    ),
    "flores200": ({"k": 4, "margin": "ratio"}, {"k": 5, "margin": "distance"}),
}
RERUN = [  # a key, its new value, the benchmarks that run again
    ("evalsets.flores200.version", "v3", OF_FLORES),
    ("evalsets.xsimpp.version", "v3", {"xsimpp"}),
    ("probes.sib200.epochs", 3, {"sib200"}),
    ("probes.counterfactual.hidden", [3], {"counterfactual"}),
    ("documents.split", 0, {"sib200", "counterfactual"}),
    ("seed", 5, {"sib200", "counterfactual"}),
]
for name, protocols in PROTOCOLS.items():
    own = OF_FLORES if name == "flores200" else {name}
    for protocol, again in zip(protocols, (set(), own), strict=True):
        RERUN += [(f"evalsets.{name}.protocol.{key}", v, again) for key, v in protocol.items()]


def test_a_benchmark_runs_again_when_its_set_or_its_settings_change_and_only_then(tmp_path):
    project = Settings(tmp_path, HASHED)

    def hashes(value):
        experiment = project.load(value)
        names = experiment.benchmarks
        trained = stage_hash(experiment, "train", system="ems")
        return trained, {
            n: stage_hash(experiment, "bench", system="ngram", benchmark=n) for n in names
        }

    training, before = hashes(HASHED)
    for path, new, expected in RERUN:
        trained, after = hashes(edited(HASHED, path, new))
        assert {name for name in after if after[name] != before[name]} == expected, path
        assert (trained == training) == (path != "seed")
