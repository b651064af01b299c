"""Laws of the benchmarks: P@1 is what a double loop finds, the score file says what was scored."""

import json
import math

import numpy as np
import pytest
from experiments_made import Settings
from mirror_made import DOCUMENTS, write_divided, write_opus, write_tatoeba
from results_made import counts, hits, values

from ems import retrieval
from ems.bench.registry import evaluate
from ems.corpora.split import part_of_line
from ems.errors import EmsError
from ems.languages import load_tatoeba_codes
from ems.retrieval import normalised, precision_at_1
from ems.scores import read_score_file

# --- P@1


def naive_p1(queries, candidates):
    """Percent of rows whose own counterpart has the highest cosine: loops, plain floats."""
    hits = 0
    for at, query in enumerate(queries):
        best, best_score = None, -math.inf
        for other, candidate in enumerate(candidates):
            product = sum(a * b for a, b in zip(query, candidate, strict=True))
            lengths = math.sqrt(sum(a * a for a in query) * sum(b * b for b in candidate))
            if product / lengths > best_score:
                best, best_score = other, product / lengths
        hits += best == at
    return 100 * hits / len(queries)


def noisy_pairs(count, seed, noise=0.3):
    """Two aligned sets of vectors of very unequal lengths, so that cosine is not a dot product."""
    random = np.random.default_rng(seed)
    first = random.normal(size=(count, 8)) * random.uniform(0.1, 9, size=(count, 1))
    second = first + noise * np.linalg.norm(first, axis=1, keepdims=True) * random.normal(
        size=(count, 8)
    )
    return first.astype(np.float32), (second * random.uniform(0.1, 9, (count, 1))).astype("f4")


@pytest.mark.parametrize("block", [1, 7, 50, 64, 1024])
@pytest.mark.parametrize("seed", [0, 3, 11])
def test_precision_at_1_equals_a_double_loop(seed, block, monkeypatch):
    monkeypatch.setattr(retrieval, "BLOCK", block)
    first, second = noisy_pairs(50, seed)
    one, other = normalised(first, "one"), normalised(second, "other")
    there, back = (
        naive_p1(first.tolist(), second.tolist()),
        naive_p1(second.tolist(), first.tolist()),
    )
    assert precision_at_1(one, other) == pytest.approx(there)
    assert precision_at_1(other, one) == pytest.approx(back)
    assert 5 < there < 95
    assert there != back  # so that a swapped direction would show


def test_of_equal_candidates_only_the_first_can_be_a_hit():
    queries = np.eye(3, dtype=np.float32)[[0, 0, 2]]
    candidates = np.eye(3, dtype=np.float32)[[0, 0, 2]]
    assert precision_at_1(queries, candidates) == pytest.approx(200 / 3)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_vector_without_a_direction_is_an_error_that_names_the_sentence(value):
    vectors = np.ones((5, 3), np.float32)
    vectors[3] = value
    with pytest.raises(EmsError, match=r"tatoeba de: the embedding of sentence 4 is zero or not"):
        normalised(vectors, "tatoeba de")


def test_normalised_rows_have_length_one_and_their_direction():
    vectors = np.array([[3.0, 4.0], [0.0, -2.0]], np.float32)
    assert normalised(vectors, "x").tolist() == [pytest.approx([0.6, 0.8]), [0.0, -1.0]]


# --- Tatoeba

SENTENCES = {  # each side's sentences with the angle of their vectors, in degrees
    "deu": ({"Eins.": 0, "Zwei.": 50, "Drei.": 200}, {"One.": 10, "Two.": 100, "Three.": 210}),
    "fra": ({"Un.": 0, "Deux.": 90}, {"Hello.": 80, "World.": 95}),
}
# By hand: Zwei (50) is nearer to One (40 away) than to Two (50 away), all else of deu hits;
# Hello (80) is nearer to Deux (10 away) than to Un, all else of fra hits.
EXPECTED = {
    "deu": {"to_english": 200 / 3, "from_english": 100.0},
    "fra": {"to_english": 100.0, "from_english": 50.0},
}
HITS = {
    "deu": {"to_english": [True, False, True], "from_english": [True, True, True]},
    "fra": {"to_english": [True, True], "from_english": [False, True]},
}


class AngleEncoder:
    """Looks up the vector of a sentence by its angle and writes down what it was asked."""

    def __init__(self):
        sides = [side for both in SENTENCES.values() for side in both]
        self.angles = {text: angle for side in sides for text, angle in side.items()}
        self.asked = []

    def encode(self, lines, language, what="encode"):
        self.asked.append((language, lines))
        radians = np.deg2rad([self.angles[line] for line in lines])
        length = 1 + np.arange(len(lines))[:, None]  # cosine must not see it
        return (np.stack([np.cos(radians), np.sin(radians)], 1) * length).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    """The benchmark as LASER ships it: two files per language."""
    for code, sides in SENTENCES.items():
        write_tatoeba(tmp_path, code, list(zip(*sides, strict=True)))
    return tmp_path / "tatoeba"


def run(folder, tmp_path, encoder=None, system="ems", benchmark="tatoeba", **changes):
    """Score on a benchmark whose files are in `folder`; the written file."""
    out = tmp_path / "scores" / f"{benchmark}.json"
    experiment = Settings(tmp_path / "settings").changed(**changes)
    names = {"system": system, "benchmark": benchmark}
    evaluate(encoder or AngleEncoder(), experiment, names, folder, out)
    return out


def test_the_scores_are_the_ones_counted_by_hand(folder, tmp_path):
    scores = json.loads(run(folder, tmp_path).read_text())
    header = {"benchmark", "version", "system", "system_hash", "data_sha256", "versions"}
    measured = {"metric", "higher_is_better", "label", "parallel", "languages", "rows"}
    assert set(scores) == header | measured | {"protocol", "details"}
    found = [scores[key] for key in ("benchmark", "version", "metric", "system")]
    assert found == ["tatoeba", "toy", "P@1", "ems"]
    assert scores["languages"] == {"deu": "de", "fra": "fr"}
    assert (scores["higher_is_better"], scores["parallel"]) == (True, False)
    places = [(row["source"], row["target"]) for row in scores["rows"]]
    assert places == [("deu", "en"), ("en", "deu"), ("fra", "en"), ("en", "fra")]
    for row in scores["rows"]:
        assert set(row) == {"source", "target", "value", "count", "hits", "interval"}
        low, high = row["interval"]
        assert 0 <= low <= row["value"] <= high <= 100
    read = read_score_file(tmp_path / "scores/tatoeba.json")
    assert counts(read) == {"deu": 3, "fra": 2}
    assert values(read) == {code: pytest.approx(ways) for code, ways in EXPECTED.items()}
    assert {
        code: {way: hits(row) for way, row in ways.items()}
        for code, ways in read.labelled().items()
    } == HITS


def test_each_side_is_encoded_as_its_own_language(folder, tmp_path):
    encoder = AngleEncoder()
    run(folder, tmp_path, encoder)
    expected = []
    for language, code in (("de", "deu"), ("fr", "fra")):
        foreign, english = SENTENCES[code]
        expected += [(language, list(foreign)), ("en", list(english))]
    assert encoder.asked == expected


def test_the_same_inputs_give_the_same_bytes(folder, tmp_path):
    first = run(folder, tmp_path).read_bytes()
    assert run(folder, tmp_path).read_bytes() == first


def test_only_the_languages_that_the_experiment_names_are_scored(folder, tmp_path):
    chosen = {"tatoeba": {"version": "toy", "languages": ["fr"]}}
    assert list(values(read_score_file(run(folder, tmp_path, evalsets=chosen)))) == ["fra"]


def test_the_score_file_tells_which_data_and_which_system_it_is_of(folder, tmp_path):
    def hashes(**changes):
        scores = json.loads(run(folder, tmp_path, **changes).read_text())
        return scores["data_sha256"], scores["system_hash"]

    data, system = hashes()
    assert hashes(train={"steps": 2})[0] == data
    assert hashes(train={"steps": 2})[1] != system
    assert hashes(system="ngram")[1] != system
    assert hashes(description="other words", tables={"printed": ["EMS"]}) == (data, system)
    path = folder / "tatoeba.fra-eng.eng"
    path.write_text("World.\nHello.\n")
    assert hashes()[0] != data
    assert hashes()[1] == system


def error_of(folder, tmp_path, encoder=None):
    with pytest.raises(EmsError) as caught:
        run(folder, tmp_path, encoder)
    assert not (tmp_path / "scores").exists()
    return str(caught.value)


def test_sides_of_unequal_length_are_an_error_that_names_both_files(folder, tmp_path):
    (folder / "tatoeba.fra-eng.eng").write_text("Hello.\n")
    message = error_of(folder, tmp_path)
    assert "tatoeba.fra-eng.fra has 2 lines" in message
    assert "tatoeba.fra-eng.eng has 1" in message


@pytest.mark.parametrize("name", ["tatoeba.deu-eng.deu", "tatoeba.fra-eng.eng"])
def test_a_missing_file_is_an_error_that_names_it(name, folder, tmp_path):
    (folder / name).unlink()
    assert name in error_of(folder, tmp_path)


@pytest.mark.parametrize("text", ["Un.\n\nDeux.\n", "Un.\n \t\n"])
def test_an_empty_line_is_an_error_that_names_file_and_line(text, folder, tmp_path):
    (folder / "tatoeba.fra-eng.fra").write_text(text)
    assert "tatoeba.fra-eng.fra: line 2 is empty" in error_of(folder, tmp_path)


def test_text_that_is_not_utf8_is_an_error_that_names_the_file(folder, tmp_path):
    (folder / "tatoeba.fra-eng.fra").write_bytes(b"Un.\nD\xe9ux.\n")
    assert "tatoeba.fra-eng.fra: not UTF-8" in error_of(folder, tmp_path)


@pytest.mark.parametrize(("text", "where"), [("Deux.", "fra"), ("World.", "fra, English")])
def test_a_vector_that_is_not_finite_is_an_error_that_names_the_sentence(
    text, where, folder, tmp_path
):
    encoder = AngleEncoder()
    encoder.angles[text] = math.nan
    message = error_of(folder, tmp_path, encoder)
    assert message.startswith(f"tatoeba {where}: the embedding of sentence 2")


# --- languages that the experiment does not train on


@pytest.fixture
def whole(tmp_path):
    """All 112 languages of Tatoeba, three sentences of each."""
    for code in load_tatoeba_codes():
        write_tatoeba(tmp_path, code, [(f"{code} {at}", f"of {code} {at}") for at in range(3)])
    return tmp_path / "tatoeba"


class Listener:
    """An encoder that writes down what it was asked and knows one vector a line."""

    def __init__(self):
        self.asked = {}

    def encode(self, lines, language, what="encode"):
        self.asked.setdefault(language, []).append(lines)
        return np.eye(len(lines), dtype=np.float32)


def test_an_unseen_language_is_und_in_the_file_and_for_the_encoder(whole, tmp_path):
    encoder = Listener()
    out = run(whole, tmp_path, encoder, evalsets={"tatoeba": {"languages": "all"}})
    scores = read_score_file(out)
    assert len(values(scores)) == len(scores.languages) == 112
    seen = {"deu": "de", "fra": "fr"}
    assert scores.languages == {code: seen.get(code, "und") for code in load_tatoeba_codes()}
    unseen = [[f"{code} {at}" for at in range(3)] for code in load_tatoeba_codes()]
    assert sorted(encoder.asked["und"]) == [u for u in unseen if u[0][:3] not in seen]
    assert encoder.asked["de"] == [["deu 0", "deu 1", "deu 2"]]
    assert len(encoder.asked["en"]) == 112


# --- NTREX

DIVISION = {"NTREX": {"documents": DOCUMENTS, "parts": {"train": 0.5, "test": 0.5}}}
OF_NTREX = {"evalsets": {"ntrex": {"version": "v1"}}, "benchmarks": ["ntrex"]}
NEWS = [{"de": f"Satz {at}", "fr": f"phrase {at}", "en": f"line {at}"} for at in range(40)]
PAPERS = [f"paper.{at // 4}" for at in range(40)]


def test_the_whole_of_ntrex_is_scored_when_it_is_not_divided(tmp_path):
    folder = write_opus(tmp_path, "NTREX", "v1", NEWS)
    encoder = Listener()
    scores = read_score_file(run(folder, tmp_path, encoder, "ems", "ntrex", **OF_NTREX))
    assert (scores.benchmark, scores.version, scores.parallel) == ("ntrex", "v1", True)
    assert counts(scores) == {"de": 40, "fr": 40}
    assert encoder.asked["fr"] == [[item["fr"] for item in NEWS]]


def test_of_a_divided_ntrex_only_the_documents_of_the_part_are_scored(tmp_path):
    folder = write_divided(tmp_path, "NTREX", "v1", NEWS, PAPERS)
    part = part_of_line(PAPERS, DIVISION["NTREX"]["parts"])
    tested = [item for item, name in zip(NEWS, part, strict=True) if name == "test"]
    assert 15 < len(tested) < 25
    changes = {**OF_NTREX, "splits": DIVISION}
    changes["evalsets"] = {"ntrex": {"version": "v1", "part": "test"}}
    encoder = Listener()
    out = run(folder, tmp_path, encoder, "ems", "ntrex", **changes)
    scores = json.loads(out.read_text())
    assert scores["version"] == "v1+test"
    assert counts(read_score_file(out)) == {"de": len(tested), "fr": len(tested)}
    assert encoder.asked == {
        "de": [[item["de"] for item in tested]],
        "fr": [[item["fr"] for item in tested]],
        "en": [[item["en"] for item in tested]] * 2,
    }
    (folder / DOCUMENTS).write_text("".join(f"{name}\n" for name in ["other", *PAPERS[1:]]))
    again = json.loads(run(folder, tmp_path, Listener(), "ems", "ntrex", **changes).read_text())
    assert again["data_sha256"] != scores["data_sha256"]
    assert again["system_hash"] == scores["system_hash"]
