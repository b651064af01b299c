"""Small benchmarks of classification in their publishers' layouts, and encoders that know them.

A text says its class by a word, `topic2`, and how many classes there are by another, `of4`; the
language of the encoder's call may shift the topic, so that a transfer fails in a way that is known
beforehand.
"""

import json
import random
import re

import numpy as np
from bench_made import scored
from evalsets_made import news, review, text
from experiments_made import MINIMAL, Settings, changed
from mirror_made import write_lines

from ems.benchmarks.mldoc.languages import LANGUAGES as REUTERS
from ems.benchmarks.mldoc.reuters import CLASSES as NEWS
from ems.benchmarks.sib200.data import CLASSES as TOPICS

WIDTH = 16
QUICK = {"seeds": 2, "epochs": 40, "hidden": [6], "dropout": 0, "learning_rate": 0.03}
LANGUAGES = ["en", "de", "fr", "ja", "es", "it", "ru", "zh"]


class TopicEncoder:
    """Embeds a text by its topic, turned by `shifts` of the language, and by a little noise."""

    def __init__(self, shifts=None, noise=0.05):
        self.shifts, self.noise, self.asked = shifts or {}, noise, []

    def encode(self, lines, language, what="encode"):
        self.asked.append((language, list(lines), what))
        return np.stack([self.vector(line, language) for line in lines]).astype(np.float32)

    def vector(self, line, language):
        topic = int(re.search(r"topic(\d+)", line)[1])
        count = int(re.search(r"of(\d+)", line)[1])
        noise = np.random.default_rng(sum(line.encode())).normal(size=WIDTH)
        return np.eye(WIDTH)[(topic + self.shifts.get(language, 0)) % count] + self.noise * noise


def said(topic, of, number, where):
    """The words of a text."""
    return f"{where} item {number} topic{topic} of{of} says so"


def labelled(count, classes, where):
    """(class, text) of `count` texts in random order, the classes even."""
    order = list(range(count))
    random.Random(f"0{where}").shuffle(order)
    number = len(classes)
    return [(classes[at % number], said(at % number, number, at, where)) for at in order]


def write_mldoc(folder):
    """Reuters' corpora with MLDoc's indices: train.16, dev and test of each language."""
    for code in LANGUAGES:
        number = 0
        for split, count in {"train.16": 16, "dev": 12, "test": 20}.items():
            names = []
            for label, words in labelled(count, NEWS, f"{code} {split.partition('.')[0]}"):
                number += 1
                write_news(folder, code, number, label, words)
                names.append(f"P-{number}newsML" if code == "en" else f"P-{number}")
            write_lines(folder / "mldoc-indices" / f"{REUTERS[code]}.{split}", names)
    return folder


def write_news(folder, code, number, label, words, headline="no topic here"):
    """One item of Reuters' news in its place."""
    place = "rcv1" if code == "en" else f"RCV2_Multilingual_Corpus/{REUTERS[code]}"
    path = folder / place / "P" / (f"{number}newsML.xml" if code == "en" else f"{number}.xml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(news(number, (label,), headline, (words,)))


def write_titles(folder):
    """Reuters' corpora with the topic in the headline."""
    for code in LANGUAGES:
        for number, (label, words) in enumerate(labelled(60, NEWS, f"{code} title")):
            write_news(folder, code, number, label, "no topic", words)
    return folder


def write_cls(folder):
    """Amazon reviews version 1: train and test of three domains."""
    for code in ("en", "de", "fr", "jp"):
        for domain in ("books", "dvd", "music"):
            for split, count in {"train": 16, "test": 12}.items():
                reviews = labelled(count, ("1.0", "5.0"), f"{code} {domain} {split}")
                items = [review(stars, "Titel", words) for stars, words in reviews]
                path = folder / code / domain / f"{split}.review"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text(["<items>", *items, "</items>"]))
    return folder


def write_marc(folder):
    """Amazon reviews version 2, a fifth for each number of stars; three stars have no topic."""
    for code in ("en", "de", "es", "fr", "ja", "zh"):
        for split, count in {"train": 40, "dev": 20, "test": 20}.items():
            lines = []
            for at in range(count):
                stars = at % 5 + 1
                words = said(int(stars > 3), 2, at, f"{code} {split}") if stars != 3 else "three"
                entry = {"stars": str(stars), "review_title": "title", "review_body": words}
                lines.append(json.dumps({**entry, "language": code}))
            write_lines(folder / split / f"dataset_{code}_{split}.json", lines)
    return folder


def write_sib200(folder):
    """SIB-200: train, dev and test of each language."""
    for code in ("eng_Latn", "deu_Latn", "fra_Latn"):
        for split, count in {"train": 35, "dev": 14, "test": 21}.items():
            examples = enumerate(labelled(count, TOPICS, f"{code} {split}"))
            rows = [f"{at}\t{label}\t{words}" for at, (label, words) in examples]
            write_lines(folder / code / f"{split}.tsv", ["index_id\tcategory\ttext", *rows])
    return folder


def write_counterfactual(folder):
    """Amazon counterfactual sentences; every third is quoted."""
    for code in ("EN", "DE", "JP"):
        for split, count in {"train": 20, "valid": 10, "test": 12}.items():
            rows = []
            for at, (label, words) in enumerate(labelled(count, "01", f"{code} {split}")):
                rows.append(f'"""{words}"""\t{label}' if at % 3 == 0 else f"{words}\t{label}")
            write_lines(folder / f"{code}_{split}.tsv", ["sentence\tis_counterfactual", *rows])
    return folder


WRITERS = {
    "mldoc": write_mldoc,
    "rcv2": write_titles,
    "cls": write_cls,
    "marc": write_marc,
    "sib200": write_sib200,
    "counterfactual": write_counterfactual,
}
SIZES = {
    "mldoc": {"train": 16},
    "marc": {"train": 12},
    "rcv2": {"train": 20, "valid": 20, "test": 20},
}


def base_of(benchmark, folder):
    """The settings of an experiment with this one benchmark, whose files are in `folder`."""
    own = {} if benchmark == "pawsx" else {**QUICK, **SIZES.get(benchmark, {})}
    return MINIMAL | {
        "languages": LANGUAGES,
        "evalsets": {benchmark: {"version": "v1", "path": str(folder)}},
        "decontaminate": {"against": []},
        "benchmarks": [benchmark],
        "probes": {benchmark: own} if own else {},
    }


def experiment_of(benchmark, root, folder, **changes):
    """An experiment with this one benchmark."""
    return Settings(root).load(changed(base_of(benchmark, folder), changes))


def run(benchmark, tmp_path, folder, encoder=None, system="ngram", **changes):
    """Score on a benchmark; the written file as it is read."""
    base = base_of(benchmark, folder)
    return scored(tmp_path, benchmark, folder, encoder or TopicEncoder(), system, base, **changes)
