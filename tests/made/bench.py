"""Encoders of made-up vectors, one call to score them, and plain loops to compare with."""

import hashlib
from itertools import product

import numpy as np
import pytest
from made.experiments import MINIMAL, Settings, changed

from ems.base.errors import EmsError
from ems.bench.evaluate import Task, evaluate
from ems.bench.scores import read_score_file
from ems.config.plugins import benchmark, module, sets_of
from ems.corpora.evalsets.formats import Subset, sentences

# --- scoring


def scored(tmp_path, benchmark, folder, encoder, system="ems", base=MINIMAL, **changes):
    """Score a system on a benchmark whose files are in `folder`; the written file as it is read."""
    experiment = Settings(tmp_path / "settings", base).changed(**changes)
    out = tmp_path / "scores" / f"{benchmark}.json"
    folders = folder if isinstance(folder, dict) else {sets_of(benchmark)[0]: folder}
    evaluate(Task(encoder, experiment, system, benchmark, folders), out)
    return read_score_file(out)


def error_of(tmp_path, *arguments, **changes):
    """The message of an error after which there is no score file."""
    with pytest.raises(EmsError) as caught:
        scored(tmp_path, *arguments, **changes)
    assert not list(tmp_path.glob("scores/*"))
    return str(caught.value)


# --- encoders


class Listed:
    """The vector of each sentence as given; writes down what it was asked."""

    def __init__(self, vectors):
        self.vectors, self.asked = vectors, []

    def encode(self, lines, language, what="encode"):
        self.asked.append((language, list(lines)))
        return np.array([self.vectors[line] for line in lines], np.float32)


class Angles(Listed):
    """The vector of each sentence by its angle in degrees, of a length that cosine must not see."""

    def encode(self, lines, language, what="encode"):
        radians = np.deg2rad(super().encode(lines, language))
        length = 1 + np.arange(len(lines))[:, None]
        return (np.stack([np.cos(radians), np.sin(radians)], 1) * length).astype(np.float32)


class HashEncoder:
    """A sentence's vector is that of its last word, with a little of the sentence's own."""

    width, own = 16, 0.6

    def __init__(self):
        self.asked = []

    def vector(self, text):
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        return np.random.default_rng(seed).normal(size=self.width)

    def encode(self, lines, language, what="encode"):
        self.asked.append((language, lines))
        rows = [self.vector(line.split()[-1]) + self.own * self.vector(line) for line in lines]
        return np.array(rows, np.float32)


def unit(vectors, dtype=np.float32):
    vectors = np.asarray(vectors, np.float64)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(dtype)


def noisy(count, width, seed, noise):
    """Two sets of unit vectors, row by row near to each other, around a few centres: some have many
    near neighbours and some have few."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(5, width))
    spread = random.uniform(0.2, 1.5, size=(count, 1))
    first = centres[random.integers(5, size=count)] + spread * random.normal(size=(count, width))
    return unit(first), unit(first + noise * random.normal(size=(count, width)))


def translated(count, languages, seed, noise=0.5, width=6):
    """float32[languages, count, width]: the same sentences in each language, with noise, of very
    unequal lengths, so that cosine is not a dot product."""
    random = np.random.default_rng(seed)
    meaning = random.normal(size=(count, width))
    each = meaning + noise * random.normal(size=(languages, count, width))
    return (each * random.uniform(0.1, 9, size=(languages, count, 1))).astype(np.float32)


# --- what tests compare with: every product written out


def products(first, second):
    """float64[n, m]: the inner products of two sets of vectors; those of equal rows are equal."""
    first, second = (np.asarray(vectors, np.float64) for vectors in (first, second))
    return (first[:, None] * second).sum(2)


def around(similarity, k):
    """The mean similarity of each row's k nearest."""
    return -np.sort(-similarity, axis=1)[:, :k].mean(1)


def naive_hits(queries, candidates):
    """Of each query whether its own row has the highest cosine, of equals the first."""
    best = products(queries, unit(candidates, np.float64)).argmax(1)
    return (best == np.arange(len(best))).tolist()


def naive_nearest(queries, candidates, k):
    """[(similarity, index), ...] of the k nearest of each query, of equals the first before."""
    similarity = products(queries, candidates)
    index = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return [[(row[at], at) for at in near] for row, near in zip(similarity, index, strict=True)]


def naive_margins(first, second, k, margin):
    similarity = products(first, second)
    mean = (around(similarity, k)[:, None] + around(similarity.T, k)) / 2
    if margin == "ratio":
        return np.where(mean > 0, similarity / mean, 0)
    return similarity - mean if margin == "distance" else similarity


def naive_best(queries, candidates, k, margin, among_nearest=False):
    """The candidate with the highest score of each query, of equals the first (the nearest)."""
    scores = naive_margins(queries, candidates, k, margin)
    near = naive_nearest(queries, candidates, k if among_nearest else 0)
    places = [[at for _, at in row] or range(len(candidates)) for row in near]
    return [max(own, key=row.__getitem__) for row, own in zip(scores, places, strict=True)]


def naive_best_pairs(first, second, keep, k):
    """[(CSLS, i, j), ...] of the best pairs."""
    scores = 2 * products(first, second)
    if k:
        one, other = (np.unique(side, axis=0) for side in (first, second))
        scores = scores - around(products(first, other), k)[:, None]
        scores = scores - around(products(second, one), k)
    best = np.argsort(-scores, axis=None, kind="stable")[:keep]
    pairs = zip(*np.unravel_index(best, scores.shape), strict=True)
    return [(scores[pair], *pair) for pair in pairs]


# --- classification: the demo's data, and an encoder that knows their classes


WIDTH = 16
QUICK = {"seeds": 2, "epochs": 40, "hidden": [6], "dropout": 0, "learning_rate": 0.03}
LANGUAGES = ["en", "de", "fr", "ja", "es", "ru", "zh"]
REUTERS = ["english", "german", "french", "japanese", "spanish", "russian", "chinese"]
CODES = {  # of each set, its codes of the languages that the demo has
    "mldoc": REUTERS,
    "rcv2": REUTERS,
    "cls": ["en", "de", "fr", "jp"],
    "marc": ["en", "de", "es", "fr", "ja", "zh"],
    "sib200": ["eng_Latn", "deu_Latn", "fra_Latn"],
    "counterfactual": ["EN", "DE", "JP"],
}
SIZES = {
    "mldoc": {"train": 80},
    "marc": {"train": 12},
    "rcv2": {"train": 80, "valid": 40, "test": 60},
}


def folder_of(mirror, name):
    return mirror / (benchmark(name).demo or name)


def topics_of(mirror):
    """line -> (number of its class, number of classes) of every text and sentence of the sets."""
    topics = {}
    for name in CODES:
        data = module(name, "data")
        domains = getattr(data, "DOMAINS", ("",))
        for place in product(CODES[name], domains, ("train", "valid", "test")):
            documents = data.read_part(folder_of(mirror, name), Subset(*place), 80)[1]
            for document in (one for one in documents if one.label in data.CLASSES):
                topic = data.CLASSES.index(document.label), len(data.CLASSES)
                whole = f"{document.title}\n{document.text}"
                for text in (document.title, document.text, whole, *sentences(whole)):
                    topics[" ".join(text.split())] = topic
    return topics


class TopicEncoder:
    """Embeds a text by its class, turned by `shifts` of the language, and by a little noise.

    A shift makes a transfer fail in a way that is known beforehand.
    """

    def __init__(self, topics, shifts=None, noise=0.05):
        self.topics, self.shifts, self.noise, self.asked = topics, shifts or {}, noise, []

    def encode(self, lines, language, what="encode"):
        self.asked.append((language, list(lines), what))
        return np.stack([self.vector(line, language) for line in lines]).astype(np.float32)

    def vector(self, line, language):
        topic, count = self.topics[line]
        noise = np.random.default_rng(sum(line.encode())).normal(size=WIDTH)
        return np.eye(WIDTH)[(topic + self.shifts.get(language, 0)) % count] + self.noise * noise


def base_of(name, folder):
    """The settings of an experiment with this one benchmark, whose files are in `folder`."""
    own = {} if name == "pawsx" else {**QUICK, **SIZES.get(name, {})}
    known = benchmark(name).codes
    codes = [x for x in LANGUAGES if x in known] if isinstance(known, dict) else LANGUAGES[:3]
    return MINIMAL | {
        "languages": codes,
        "evalsets": {name: {"version": "v1", "path": str(folder)}},
        "decontaminate": {"against": []},
        "benchmarks": [name],
        "probes": {name: own} if own else {},
    }


def experiment_of(name, root, folder, **changes):
    return Settings(root).load(changed(base_of(name, folder), changes))


def run(name, tmp_path, folder, encoder, system="ngram", **changes):
    return scored(tmp_path, name, folder, encoder, system, base_of(name, folder), **changes)
