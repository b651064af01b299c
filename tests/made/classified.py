"""The demo's sets of classification, an encoder that knows their classes, and one call to score."""

from itertools import product

import numpy as np
from made.bench import scored
from made.experiments import MINIMAL, Settings, changed

from ems.config.plugins import benchmark, module
from ems.corpora.evalsets.formats import Subset, sentences

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
