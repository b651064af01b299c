"""Laws of systems of character n-grams, alone (char-ngram) or with an embedding (fused)."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from made.bench import naive_hits
from made.corpora import translations, write_lines
from made.experiments import MINIMAL, Settings, changed, changed_jobs, edited, hashes
from made.models import write_model
from made.references import grams, place, plain_vector
from safetensors.numpy import load_file

from ems.base.errors import Damaged, EmsError
from ems.bench.encoders import make_encoder, model_files
from ems.config.model import NgramSettings
from ems.config.systems import SystemSettings
from ems.model import char_ngrams as module
from ems.model.char_ngrams import PLACES, FusedEncoder, NgramEncoder, count_idf, features, words_of
from ems.model.encode import SentenceEncoder
from ems.model.fit import POWERS_TRIED, WEIGHTS_TRIED, fit, grid
from ems.use.encoder import Encoder

FORMS = [
    NgramSettings(),
    NgramSettings(least=1, most=1, buckets=16),
    NgramSettings(least=3, most=5, romanise=False, buckets=100),
    NgramSettings(least=16, most=16),
]
ROMAN = {  # lines, and their words as anyascii writes them
    "Café am See, am See!": "cafe am see , am see !",
    "Москва 2024": "moskva 2024",
    "東京へ": "dongjinghe",
    "": "",
    "a": "a",
    "\u00adx\u00ad y": "x y",
    "(a) ?! (a) ?!": "( a ) ?! ( a ) ?!",
}
LINES = list(ROMAN)
PLAIN = {**ROMAN, LINES[0]: "café am see , am see !", LINES[1]: "москва 2024", LINES[2]: "東京へ"}


def plain_words(line, settings):
    return (ROMAN if settings.romanise else PLAIN)[line].split()


def test_words_are_runs_of_letters_marks_and_digits_or_of_other_characters():
    words = ["don", "'", "t", "(", "stop", ")...", "12", ",", "5"]
    assert words_of("Don't (stop)... 12,5") == words
    assert words_of("हिन्दी ﬁn") == ["हिन्दी", "fin"]  # vowel signs are marks; a ligature is letters
    assert words_of("") == []


@pytest.mark.parametrize("settings", FORMS, ids=str)
def test_the_features_of_a_line_are_its_distinct_words_and_their_ngrams(settings):
    matrix = features(LINES, settings)
    assert matrix.shape == (len(LINES), PLACES)
    assert set(matrix.data.tolist()) <= {1.0}
    for row, line in enumerate(LINES):
        expected = {place(gram) for gram in grams(plain_words(line, settings), settings)}
        assert set(matrix[[row]].indices.tolist()) == expected
    assert features(["<"], settings).nnz


def test_a_word_that_cannot_be_romanised_is_itself():
    private = "\ue000\ue001"
    assert module.anyascii(private) == ""
    settings = NgramSettings()
    (row,) = features([private], settings).toarray()
    assert set(np.flatnonzero(row).tolist()) == {place(g) for g in grams([private], settings)}


@pytest.mark.parametrize("settings", FORMS, ids=str)
def test_a_vector_has_the_signed_weight_of_each_feature_in_its_bucket(settings):
    weights = np.random.default_rng(1).random(PLACES).astype(np.float32)
    encoder = NgramEncoder(settings, weights)
    vectors = encoder.encode(LINES, "xx")
    assert vectors.dtype == np.float32
    counts = encoder.vectors(LINES)[1].tolist()
    for vector, count, line in zip(vectors, counts, LINES, strict=True):
        places = {place(gram) for gram in grams(plain_words(line, settings), settings)}
        assert count == len(places)
        expected = plain_vector(places, weights, settings.buckets)
        np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_a_feature_weighs_the_root_of_its_inverse_document_frequency():
    lines = ["der see", "der berg", "der der", "das haus", "x"]
    settings = NgramSettings()
    weights, count = count_idf(iter(lines), settings)
    assert (weights.shape, weights.dtype, count) == ((PLACES,), np.float32, 5)
    of_lines = [{place(gram) for gram in grams(line.split(), settings)} for line in lines]
    for at in set.union(*of_lines):
        having = sum(at in places for places in of_lines)
        assert weights[at] == pytest.approx(math.sqrt(math.log(6 / (1 + having)) + 1))
    unknown = next(at for at in range(PLACES) if not any(at in places for places in of_lines))
    assert weights[unknown] == pytest.approx(math.sqrt(math.log(6) + 1))


def test_batches_and_the_cache_of_words_change_no_vector(monkeypatch):
    lines = [f"{line} {at}" for at in range(40) for line in LINES]
    whole = NgramEncoder(NgramSettings()).encode(lines, "xx")
    monkeypatch.setattr("ems.model.char_ngrams.BATCH", 7)
    module._marked.cache_clear()
    assert np.array_equal(NgramEncoder(NgramSettings()).encode(lines, "xx"), whole)
    assert np.array_equal(NgramEncoder(NgramSettings()).encode(lines[5:6], "xx"), whole[5:6])


SYSTEMS = {
    "ems": {},
    "ngram": {"kind": "char-ngram", "ngrams": {"buckets": 64}},
    "fused": {"kind": "fused", "of": "ems", "ngrams": {"buckets": 64}},
    "given": {"kind": "fused", "of": "ems", "ngrams": {"buckets": 64, "weight": 2, "power": 0.5}},
}
BASE = changed(
    MINIMAL,
    {
        "languages": ["en", "de"],
        "validation": {"name": "Dev", "version": "v1", "source": "nowhere"},
        "vocabulary": {"size": 300, "sample_lines": 150},
        "train": {"steps": 10, "threads": 1, "device": "cpu"},
    },
) | {"systems": SYSTEMS}


class Here:
    """An experiment, its clean text, and the model folder of its system `ems`."""

    def __init__(self, root):
        self.settings = Settings(root, BASE)
        self.models = root / "models"
        items = list(translations(120, ["de", "en"], 1))
        lines = [item[code] for item in items for code in ("de", "en")]
        write_model(self.models / "ems", ["en", "de"], lines)
        self.text = self.pairs_file(root / "clean/Toy/v1/de-en.tsv", items)
        held = {2: 30, 3: 12}.items()  # seed: pairs
        dev = {seed: translations(count, ["de", "en"], seed) for seed, count in held}
        self.pairs = [self.pairs_file(root / f"clean/Dev{k}/v1/de-en.tsv", dev[k]) for k in dev]

    @staticmethod
    def pairs_file(path, items):
        rows = enumerate(items, start=1)
        return write_lines(path, [f"{item['de']}\t{item['en']}\t{at}" for at, item in rows])

    def fit(self, name, out=None, **sources):
        given = {"text": [self.text], "pairs": self.pairs, "model": self.models / "ems"}
        return fit(self.settings.load(), name, out or self.models / name, **given | sources)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """`Here` with the folders of the fitted systems. Tests must not change it."""
    made = Here(tmp_path_factory.mktemp("fused"))
    for name in ("ngram", "fused", "given"):
        made.fit(name)
    return made


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, BASE)


SENTENCES = ["Peter 2024 geht.", "Peter goes in 2024.", "x", "Haus, Haus und ein Haus", "Nothing"]


def test_a_fused_system_has_the_settings_of_its_trained_one(project):
    own = {
        "vocabularies": {"de": {"languages": ["de", "en"]}},
        "systems": {
            "one": {"vocabulary": "de", "model": {"layers": 1}, "train": {"seed": 5}},
            "many": {"each": ["de"], "model": {"layers": 2}},
            "fused": {"kind": "fused", "of": "one"},
            "each": {"kind": "fused", "of": "many", "each": ["de"]},
        },
    }
    systems = project.load(BASE | own).systems
    fused, each = systems["fused"], systems["each-de"]
    assert (fused.base_system, fused.vocabulary, fused.languages) == ("one", "de", ("de", "en"))
    assert (fused.model.layers, fused.train.seed) == (1, 5)
    assert (each.base_system, each.vocabulary, each.model.layers) == ("many-de", "de", 2)
    assert [name for name, system in systems.items() if system.trained] == ["one", "many-de"]
    assert [name for name, system in systems.items() if system.fitted] == ["fused", "each-de"]


OF_FUSED = {"bench fused tatoeba", "bench given tatoeba"}
BENCH = {"bench ngram tatoeba"} | OF_FUSED


@pytest.mark.parametrize(
    ("path", "new", "jobs"),
    [
        ("systems.ngram.ngrams.buckets", 128, {"bench ngram tatoeba"}),
        ("systems.fused.ngrams.weight", 3, {"bench fused tatoeba"}),
        ("systems.given.ngrams", {"buckets": 64, "weight": 2, "power": 0.5, "most": 4}, set()),
        ("systems.ems.train", {"seed": 3}, {"train ems", "bench ems tatoeba"} | OF_FUSED),
        ("vocabulary.temperature", 3, {"vocabulary shared"} | BENCH),
        ("vocabulary.size", 400, {"vocabulary shared"}),
    ],
)
def test_scores_depend_on_the_ngrams_the_sample_and_the_trained_system(project, path, new, jobs):
    assert changed_jobs(project, BASE, edited(BASE, path, new)) == jobs
    assert len({hashes(project.load(BASE))[name] for name in BENCH}) == len(BENCH)


def test_weights_are_counted_in_the_training_text_only(here):
    about = json.loads((here.models / "ngram/model.json").read_text())
    assert (about["kind"], about["lines"]) == ("char-ngram", 150)
    lines = [side for row in here.text.read_text().splitlines() for side in row.split("\t")[:2]]
    weights = load_file(here.models / "ngram/ngrams.safetensors")["weights"]
    every, _ = count_idf(lines, NgramSettings())
    known = every < every.max()
    assert weights[~known] == pytest.approx(weights.max())  # nothing that is not in the text
    assert (weights[known] < weights.max()).mean() > 0.5  # the most, of 150 of 240 lines
    other = here.fit("ngram", here.models.parent / "all", text=[here.text, *here.pairs])
    assert other["sha256"] != about["sha256"]


def test_the_grid_has_every_weight_and_power_and_weight_zero_once():
    points = grid(NgramSettings())
    assert len(points) == 1 + (len(WEIGHTS_TRIED) - 1) * len(POWERS_TRIED) == len(set(points))
    assert points[0] == (0, 0)
    assert grid(NgramSettings(weight=3)) == [(3, power) for power in POWERS_TRIED]
    assert grid(NgramSettings(power=1)) == [(weight, 1) for weight in WEIGHTS_TRIED]


def test_the_chosen_weight_has_the_best_p1_of_the_grid(here, tmp_path):
    """P@1 by plain loops: the mean of both directions, then of the corpora."""
    about = json.loads((here.models / "fused/model.json").read_text())
    scores = {(tried["weight"], tried["power"]): tried["p1"] for tried in about["grid"]}
    assert list(scores) == grid(NgramSettings())
    best = max(scores.values())
    assert scores[about["weight"], about["power"]] == best
    assert (about["weight"], about["power"]) == next(p for p, p1 in scores.items() if p1 == best)
    assert best > scores[0, 0]
    folder = shutil.copytree(here.models, tmp_path / "models") / "fused"
    for point in [(0.0, 0.0), (1.0, 0.5), (16.0, 2.0)]:
        weighed = about | dict(zip(("weight", "power"), point, strict=True))
        (folder / "model.json").write_text(json.dumps(weighed))
        encoder, means = FusedEncoder(folder), []
        for path in here.pairs:
            rows = [row.split("\t") for row in path.read_text().splitlines()]
            first, second = (
                encoder.encode([row[side] for row in rows], code).tolist()
                for side, code in ((0, "de"), (1, "en"))
            )
            hits = naive_hits(first, second) + naive_hits(second, first)
            means.append(100 * sum(hits) / len(hits))
        assert scores[point] == pytest.approx(sum(means) / 2, abs=0.001)


def test_given_weights_are_not_searched(here, tmp_path):
    about = json.loads((here.models / "given/model.json").read_text())
    assert (about["weight"], about["power"], about["grid"]) == (2, 0.5, [])
    assert here.fit("given", tmp_path / "models/given", pairs=[])["weight"] == 2


def test_a_trained_system_is_not_fitted(here, tmp_path):
    with pytest.raises(EmsError, match=r"systems\.ems: nothing to fit for kind encoder"):
        here.fit("ems", tmp_path / "out")


def test_an_error_leaves_no_complete_folder_and_run_again_gives_the_same_bytes(here, tmp_path):
    empty, out = write_lines(tmp_path / "Dev/v1/de-en.tsv", []), here.models / "again"
    with pytest.raises(Damaged, match=r"de-en.tsv: expected pairs of sentences, found"):
        here.fit("fused", out, pairs=[*here.pairs, empty])
    assert [path.name for path in out.iterdir()] == ["ngrams.safetensors"]
    here.fit("fused", out)
    files = [sorted((here.models / name).iterdir()) for name in ("again", "fused")]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]


def test_without_idf_a_char_ngram_needs_no_folder(here, tmp_path):
    ngrams = NgramSettings(idf=False, buckets=64)
    system = SystemSettings("char-ngram", ngrams=ngrams)
    vectors = make_encoder(system).encode(SENTENCES, "de")
    ones = NgramEncoder(ngrams, np.ones(PLACES, np.float32)).encode(SENTENCES, "de")
    assert np.array_equal(vectors, ones)
    with pytest.raises(EmsError, match="char-ngram needs its model folder; give"):
        make_encoder(SystemSettings("char-ngram", ngrams=NgramSettings()))


def test_the_cosine_of_fused_vectors_is_the_weighted_sum_of_both_cosines(here):
    encoder = FusedEncoder(here.models / "given")
    vectors = encoder.encode(SENTENCES, "de")
    assert vectors.dtype == np.float32
    embeddings = SentenceEncoder(here.models / "ems").encode(SENTENCES, "de").tolist()
    ngrams, counts = NgramEncoder.load(here.models / "given").vectors(SENTENCES)
    ngrams = ngrams.toarray().tolist()
    weights = [2 * (count / 100) ** 0.5 for count in counts.tolist()]

    def cosine(one, other):
        return np.dot(one, other) / math.sqrt(np.dot(one, one) * np.dot(other, other))

    for i in range(len(SENTENCES)):
        for j in range(len(SENTENCES)):
            product = weights[i] * weights[j] * cosine(ngrams[i], ngrams[j])
            length = math.sqrt((1 + weights[i] ** 2) * (1 + weights[j] ** 2))
            expected = (cosine(embeddings[i], embeddings[j]) + product) / length
            found = cosine(vectors[i].tolist(), vectors[j].tolist())
            assert found == pytest.approx(expected, abs=1e-5)


def test_a_fused_system_counts_the_tokens_of_its_trained_one(here):
    fused, trained = FusedEncoder(here.models / "given"), SentenceEncoder(here.models / "ems")
    assert fused.token_counts(SENTENCES, "de") == trained.token_counts(SENTENCES, "de")


@pytest.mark.parametrize("name", ["ems", "ngram", "fused"])
def test_a_model_folder_is_an_encoder_by_its_kind(here, name):
    systems = here.settings.load().systems
    folder = make_encoder(SystemSettings("folder", place=str(here.models / name)))
    expected = make_encoder(systems[name], here.models / name)
    assert np.array_equal(folder.encode(SENTENCES, "de"), expected.encode(SENTENCES, "de"))


def test_the_files_of_a_fused_folder_include_the_trained_encoder(here):
    ours = ["model.json", "model.safetensors", "vocabulary.model"]

    def files(name):
        paths = model_files(SystemSettings("folder", place=str(here.models / name)))
        return [str(Path(path).resolve().relative_to(here.models.resolve())) for path in paths]

    assert files("ems") == files("absent")[:0] + [f"ems/{name}" for name in ours]
    assert files("absent") == [f"absent/{name}" for name in ours]
    assert files("ngram") == ["ngram/model.json", "ngram/ngrams.safetensors"]
    own = ["fused/model.json", "fused/ngrams.safetensors"]
    assert files("fused") == [*own, *(f"ems/{name}" for name in ours)]


@pytest.mark.parametrize(("name", "kind"), [("fused", "fused"), ("ngram", "char-ngram")])
def test_a_folder_of_ngrams_is_no_trained_model(here, name, kind):
    with pytest.raises(EmsError, match=f"expected the model folder of a trained .* kind {kind}, "):
        Encoder(here.models / name)


def test_another_trained_encoder_is_an_error(here, tmp_path):
    models = shutil.copytree(here.models, tmp_path / "models")
    (models / "ems/model.json").write_text((models / "ems/model.json").read_text() + "\n")
    with pytest.raises(Damaged, match=r"not the model that .*fused was made with"):
        FusedEncoder(models / "fused")
