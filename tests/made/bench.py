"""Encoders of made-up vectors, one call to score them, and plain loops to compare with."""

import hashlib
import math
from itertools import product

import numpy as np
import pytest
from made.experiments import MINIMAL, Settings, changed

from ems.base.errors import EmsError
from ems.bench.evaluate import evaluate
from ems.bench.scores import read_score_file
from ems.config.plugins import benchmark, module, sets_of
from ems.corpora.evalsets.formats import Subset, sentences

# --- scoring


def scored(tmp_path, benchmark, folder, encoder, system="ems", base=MINIMAL, **changes):
    """Score a system on a benchmark whose files are in `folder`; the written file as it is read."""
    experiment = Settings(tmp_path / "settings", base).changed(**changes)
    out = tmp_path / "scores" / f"{benchmark}.json"
    folders = folder if isinstance(folder, dict) else {sets_of(benchmark)[0]: folder}
    evaluate(encoder, experiment, {"system": system, "benchmark": benchmark}, folders, out)
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

    def vector(self, text):
        """Numbers that depend on the text alone."""
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        return np.random.default_rng(seed).normal(size=self.width)

    def encode(self, lines, language, what="encode"):
        rows = [self.vector(line.split()[-1]) + self.own * self.vector(line) for line in lines]
        return np.array(rows, np.float32)


def unit(vectors):
    """Rows of length 1, float32."""
    vectors = np.asarray(vectors, np.float64)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def at_cosine(cosine, place, width):
    """A unit vector with this cosine to the axis `place`, and none to the other first axes."""
    vector = [0.0] * (2 * width)
    vector[place], vector[width + place] = cosine, math.sqrt(1 - cosine * cosine)
    return vector


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


# --- plain loops


def dot(one, other):
    """The inner product of two lists of numbers."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def naive_hits(queries, candidates):
    """Of each query whether its own row has the highest cosine, of equals the first."""
    hits = []
    for at, query in enumerate(queries):
        cosines = [
            dot(query, one) / math.sqrt(dot(query, query) * dot(one, one)) for one in candidates
        ]
        hits.append(cosines.index(max(cosines)) == at)
    return hits


def naive_nearest(queries, candidates, k):
    """[(similarity, index), ...] of the k nearest of each query, of equals the first before."""
    nearest = []
    for query in queries:
        every = [(dot(query, candidate), at) for at, candidate in enumerate(candidates)]
        nearest.append(sorted(every, key=lambda item: (-item[0], item[1]))[:k])
    return nearest


def naive_score(similarity, one, other, margin):
    """The margin of a similarity; `one` and `other`: the neighbours of both sentences."""
    around = sum(s for s, _ in one) / (2 * len(one)) + sum(s for s, _ in other) / (2 * len(other))
    if margin == "absolute":
        return similarity
    if margin == "distance":
        return similarity - around
    return similarity / around if around > 0 else 0.0


def naive_mine(first, second, k, margin):
    """[(score, at, other), ...], the best first: best candidates of both sides, each once."""
    forward, backward = naive_nearest(first, second, k), naive_nearest(second, first, k)
    candidates = []
    for at, near in enumerate(forward):
        scores = [(naive_score(s, near, backward[j], margin), at, j) for s, j in near]
        candidates.append(max(scores, key=lambda item: item[0]))
    for at, near in enumerate(backward):
        scores = [(naive_score(s, forward[i], near, margin), i, at) for s, i in near]
        candidates.append(max(scores, key=lambda item: item[0]))
    kept, used = [], (set(), set())
    for score, at, other in sorted(candidates, key=lambda item: -item[0]):
        if at not in used[0] and other not in used[1]:
            used[0].add(at)
            used[1].add(other)
            kept.append((score, at, other))
    return kept


def naive_best(queries, candidates, k, margin, among_nearest=False):
    """The candidate with the highest score of each query, of equals the first (the nearest)."""
    forward, backward = naive_nearest(queries, candidates, k), naive_nearest(candidates, queries, k)
    best = []
    for query, near in zip(queries, forward, strict=True):
        places = [at for _, at in near] if among_nearest else range(len(candidates))
        scores = [
            naive_score(dot(query, candidates[at]), near, backward[at], margin) for at in places
        ]
        best.append(places[scores.index(max(scores))])
    return best


def naive_f1(mined, gold):
    """(best F1, precision, recall, pairs extracted) over all cuts of pairs by a threshold.

    mined: [(score, one, other), ...], gold: {(one, other), ...}.
    """
    best = (0.0, 0.0, 0.0, 0)
    for least in sorted({score for score, _, _ in mined}, reverse=True):
        extracted = [(one, other) for score, one, other in mined if score >= least]
        right = len(set(extracted) & gold)
        precision, recall = right / len(extracted), right / len(gold)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        if f1 > best[0]:
            best = (f1, precision, recall, len(extracted))
    return best


def naive_best_pairs(first, second, keep, k):
    """[(CSLS, i, j), ...] of the best pairs, in plain loops over Python's floats."""
    cosine = [[dot(x, y) for y in second] for x in first]

    def around(values):
        return sum(sorted(values, reverse=True)[:k]) / min(k, len(values)) if k else 0.0

    rows, columns = map(around, cosine), map(around, zip(*cosine, strict=True))
    rows, columns = list(rows), list(columns)
    scores = [
        (-(2 * cosine[i][j] - rows[i] - columns[j]), i, j)
        for i in range(len(first))
        for j in range(len(second))
    ]
    return [(-score, i, j) for score, i, j in sorted(scores)[:keep]]


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
    """The folder of a set in the demo's mirror."""
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
    """An experiment with this one benchmark."""
    return Settings(root).load(changed(base_of(name, folder), changes))


def run(name, tmp_path, folder, encoder, system="ngram", **changes):
    """Score on a benchmark; the written file as it is read."""
    return scored(tmp_path, name, folder, encoder, system, base_of(name, folder), **changes)
