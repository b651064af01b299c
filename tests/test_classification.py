"""Zero-shot classification: what is trained, chosen by, tested and reported."""

import json
import re
import shutil
from collections import Counter
from functools import cache, partial

import numpy as np
import pytest
from conftest import SHARED, needs
from made.bench import TopicEncoder, base_of, error_of, experiment_of, folder_of, run, topics_of
from made.corpora import write_lines
from made.experiments import Settings
from made.scores import by_direction, counts, hits, means

import ems.benchmarks.cls.data as cls
import ems.benchmarks.counterfactual.data as counterfactual
import ems.benchmarks.mldoc.data as mldoc
from ems.base.errors import EmsError
from ems.bench.task import Task
from ems.benchmarks.families import classification
from ems.config.model import NgramSettings
from ems.corpora.evalsets.formats import Document, Subset
from ems.corpora.evalsets.sets import read_sides, set_files
from ems.model.char_ngrams import NgramEncoder

SIX = ("de", "es", "fr", "ja", "ru", "zh")
BOTH = {f"{one}-{other}" for x in SIX for one, other in (("en", x), (x, "en"))}
THREE = {f"{one}-{other}" for x in ("de", "fr", "ja") for one, other in (("en", x), (x, "en"))}
DIRECTIONS = {
    "mldoc": BOTH,
    "rcv2": BOTH,
    "cls": {f"{pair} {domain}" for pair in THREE for domain in ("books", "dvd", "music")},
    "marc": BOTH - {"en-ru", "ru-en"},
    "sib200": {"en-en", "en-de", "en-fr"},
    "counterfactual": {"en-en", "en-de", "en-ja"},
}


@pytest.fixture(scope="session")
def topics(demo_mirror):
    return topics_of(demo_mirror)


@pytest.fixture
def written(demo_mirror):
    """A function from a benchmark to its folder."""
    return partial(folder_of, demo_mirror)


@pytest.fixture
def copied(written, tmp_path):
    """A function from a benchmark to a copy of its folder, which a test may change."""
    return cache(lambda name: shutil.copytree(written(name), tmp_path / name))


@pytest.fixture
def score(written, topics, tmp_path):
    """A function that scores an encoder on a benchmark."""

    def score(name, folders=written, encoder=None, **changes):
        return run(name, tmp_path, folders(name), encoder or TopicEncoder(topics), **changes)

    return score


@pytest.fixture
def reader(written, tmp_path):
    """A function that returns a benchmark's reader; `probe`: changed settings."""

    def reader(name, **probe):
        folder, changes = written(name), {"probes": {name: probe}} if probe else {}
        experiment = experiment_of(name, tmp_path / "settings", folder, **changes)
        return classification.Reader(Task(None, experiment, "ngram", name, {name: folder}))

    return reader


# --- directions


@pytest.mark.parametrize("name", DIRECTIONS)
def test_each_benchmark_has_its_directions_and_measures_the_transfer(name, score, topics):
    """German classes are shifted: a direction with German on one side gets the wrong class."""
    scores = score(name, encoder=TopicEncoder(topics, {"de": 1}))
    assert scores.metric == "accuracy"
    assert set(scores.labelled()) == set(scores.details) == DIRECTIONS[name]
    assert scores.parallel == (name == "sib200")
    check_transfer(scores)
    for direction in DIRECTIONS[name]:
        seeds, chosen = scores.labelled()[direction], scores.details[direction]
        assert list(seeds) == ["1", "2"]
        for row in seeds.values():
            assert f"{row.source}-{row.target} {row.split}".strip() == direction
        assert [len(chosen[key]) for key in ("epochs", "weight_decay")] == [2, 2]


def check_transfer(scores):
    for direction, accuracy in means(scores).items():
        source, target = direction.split()[0].split("-")
        assert accuracy > 90 if (source == "de") == (target == "de") else accuracy < 10


def test_sib200_has_both_directions_with_both_ways(score, topics):
    encoder = TopicEncoder(topics, {"de": 1})
    scores = score("sib200", encoder=encoder, probes={"sib200": {"both_ways": True}})
    assert set(scores.labelled()) == {"en-de", "de-en", "en-fr", "fr-en"}
    check_transfer(scores)


@pytest.mark.slow
def test_a_direction_agrees_with_its_hits_and_does_not_depend_on_others(score, topics):
    noisy = TopicEncoder(topics, noise=0.6)
    scores = score("mldoc", encoder=noisy)
    assert set(counts(scores).values()) == {80}
    for row in (row for row in scores.rows if not row.measure):
        assert row.value == pytest.approx(100 * np.mean(hits(row)))
    assert len({row.value for row in scores.rows}) > 3  # a guard
    content = scores.path.read_bytes()
    for row in json.loads(content)["rows"]:
        assert ("interval" in row) == ("measure" not in row)
    assert score("mldoc", encoder=noisy).path.read_bytes() == content
    assert score("mldoc", encoder=noisy, seed=2).rows != scores.rows
    some, whole = {"mldoc": {"languages": ["en", "fr"]}}, by_direction(scores)
    few = by_direction(score("mldoc", encoder=noisy, evalsets=some))
    assert few == {name: whole[name] for name in ("en-fr", "fr-en")}


def test_the_most_frequent_class_of_the_test_part_is_counted(copied, score):
    path = copied("counterfactual") / "DE_test.tsv"
    path.write_text(path.read_text().replace("\t0\n", "\t1\n", 3))
    scores = score("counterfactual", copied)
    assert means(scores, classification.MAJORITY) == {"en-en": 50, "en-de": 53, "en-ja": 50}


@pytest.mark.slow
def test_sources_trained_one_by_one_give_the_same_scores(score, topics, monkeypatch):
    few, noisy = {"cls": {"languages": ["en", "de"]}}, TopicEncoder(topics, noise=0.6)
    together = score("cls", encoder=noisy, evalsets=few)
    monkeypatch.setattr(classification, "MOST_BYTES", 1)
    assert score("cls", encoder=noisy, evalsets=few) == together


# --- who chooses


def replace_in(path, old, new):
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file", "changed"),
    [
        ("mldoc", "mldoc-indices/german.dev", "mldoc-indices/german.train.80"),
        ("sib200", "deu_Latn/dev.tsv", ("\thealth\t", "\tsports\t")),
        ("counterfactual", "DE_valid.tsv", ("\t1\n", "\t0\n")),
    ],
)
def test_only_the_source_language_chooses_the_epoch(name, file, changed, copied, score, topics):
    """The German validation part is another one; where it is unused, a class is gone."""
    before = by_direction(score(name, copied, TopicEncoder(topics, noise=0.5)))
    path, asked = copied(name) / file, TopicEncoder(topics, noise=0.5)
    if name == "mldoc":
        shutil.copy(copied(name) / changed, path)
    else:
        replace_in(path, *changed)
    after = by_direction(score(name, copied, asked))
    assert {direction for direction in before if after[direction] != before[direction]} <= {"de-en"}
    read = [what for _, _, what in asked.asked if "valid" in what]
    german = [what for what in read if re.search(" (german|de|deu_Latn|DE) ", what)]
    assert len(read) > len(german) == (name == "mldoc")  # as a source, or not at all


def test_only_the_test_part_of_a_target_is_read(score, topics):
    listening = TopicEncoder(topics)
    score("counterfactual", encoder=listening)
    parts = [tuple(what.split()[2:4]) for _, _, what in listening.asked]
    english = [("EN", part) for part in ("train", "valid", "test")]
    assert sorted(parts) == sorted([*english, ("DE", "test"), ("JP", "test")])


# --- which documents


def test_the_test_part_of_the_source_is_the_validation_part_of_cls(reader, written):
    for part, split in {"train": "train", "valid": "test", "test": "test"}.items():
        documents = cls.read_split(written("cls"), "jp", "dvd", split)
        texts = [f"{document.title}\n{document.text}" for document in documents]
        assert reader("cls").examples(Subset("jp", "dvd", part)).texts == texts


def test_training_reviews_are_half_of_each_class_without_three_stars(reader, topics):
    train, test = (Subset("de", "", part) for part in ("train", "test"))
    examples = reader("marc").examples(train)
    assert Counter(examples.labels) == {0: 6, 1: 6}
    assert [topics[" ".join(text.split())][0] for text in examples.texts] == examples.labels
    assert len(set(examples.texts)) == 12
    assert reader("marc").examples(train) == examples
    assert Counter(reader("marc").examples(test).labels) == {0: 48, 1: 48}
    with pytest.raises(EmsError, match=r"dataset_de_train.json: expected at least 81 documents"):
        reader("marc", train=162).examples(train)


def test_drawn_parts_of_headlines_do_not_overlap(reader, topics):
    train, valid, test = (Subset("german", "", part) for part in ("train", "valid", "test"))
    parts = [reader("rcv2").examples(part) for part in (train, valid, test)]
    assert [len(part.texts) for part in parts] == [80, 40, 60]
    texts = [text for part in parts for text in part.texts]
    assert len(set(texts)) == 180
    assert topics.keys() >= set(texts)
    assert reader("rcv2").examples(test) == parts[2]
    with pytest.raises(EmsError, match=r"german: expected at least 1,096 documents .* found 200"):
        reader("rcv2", train=996).examples(train)


def test_each_document_is_as_likely_to_be_drawn(tmp_path):
    documents = [Document("", "", str(at)) for at in range(20)]
    seeds = map(str, range(2000))
    counts = Counter(
        one.text for seed in seeds for one in classification.drawn(documents, 5, seed, tmp_path)
    )
    assert len(counts) == 20
    assert all(400 < count < 600 for count in counts.values())


def test_the_title_setting_adds_the_headline_of_news(reader, written):
    document = next(mldoc.read_split(written("mldoc"), "german", "dev"))
    for title, expected in ((True, f"{document.title}\n{document.text}"), (False, document.text)):
        examples = reader("mldoc", title=title).examples(Subset("german", "", "valid"))
        assert examples.texts[0] == expected


def test_quoted_counterfactual_sentences_are_unquoted(tmp_path):
    quoted = '"He said ""no""\tand left"\t1'
    write_lines(tmp_path / "DE_test.tsv", ["sentence\tis_counterfactual", quoted, "plain\t0"])
    examples = [(d.label, d.text) for d in counterfactual.read_split(tmp_path, "DE", "test")]
    assert examples == [("1", 'He said "no"\tand left'), ("0", "plain")]


def test_only_a_benchmark_needs_training_files_and_decontamination_skips_them(written, tmp_path):
    folder = written("counterfactual")
    experiment = experiment_of("counterfactual", tmp_path / "s", folder)
    sides = read_sides(experiment, "counterfactual", folder, "EN")
    texts = [text for side in sides for text in side]
    trained = {document.text for document in counterfactual.read_split(folder, "EN", "train")}
    assert (len(texts), len(trained)) == (140, 120)
    assert trained.isdisjoint(texts)
    other = {"evalsets": {"tatoeba": {"version": "toy"}}, "benchmarks": ["tatoeba"]}
    other = experiment_of("counterfactual", tmp_path / "s", folder, **other)
    for settings, files in ((experiment, ["EN_train.tsv"]), (other, [])):
        names = [path.name for path in set_files(settings, "counterfactual", folder)]
        assert [name for name in names if "train" in name] == files


def test_published_counterfactual_files_are_read_whole():
    folder = SHARED / "amazon_counterfactual"
    needs(folder.is_dir(), "real data in ../shared/data")
    published = {"EN": (4018, 335, 670), "DE": (None, 466, 934), "JP": (None, 466, 934)}
    for code, sizes in published.items():
        for split, count in zip(counterfactual.SPLITS, sizes, strict=True):
            if count:
                examples = counterfactual.read_split(folder, code, split)
                assert len(examples) == count
                assert {document.label for document in examples} == {"0", "1"}


# --- documents of several sentences


class Counted(TopicEncoder):
    """An encoder with three tokens per word."""

    def token_counts(self, lines, language):
        return [3 * len(line.split()) for line in lines]

    def vector(self, line, language):
        return np.array([len(line), line.count("a"), 1.0])


SENTENCES = {
    "short a": ["short a"],
    "A first one. And a second!\nThird line": ["A first one.", "And a second!", "Third line"],
    "just\nso": ["just", "so"],
    "naïve ones? Yes. No": ["naïve ones?", "Yes.", "No"],
}


@pytest.mark.parametrize("limit", [0, 5, 20, 1000])
def test_a_document_of_too_many_tokens_is_the_mean_of_its_sentences(limit, tmp_path):
    expected = []
    for text, cut in SENTENCES.items():
        many = limit and 3 * len(text.split()) > limit
        lines = cut if many else [" ".join(text.split())]
        expected.append(np.mean([(len(line), line.count("a"), 1.0) for line in lines], axis=0))
    encoder = Counted({})
    experiment = Settings(tmp_path / "s").changed(documents={"split": limit})
    task = Task(encoder, experiment, "ngram", "tatoeba", {"tatoeba": tmp_path})
    embedded = classification.embed_documents(task, list(SENTENCES), "de", "here")
    assert embedded == pytest.approx(np.array(expected))
    assert embedded.dtype == np.float32
    assert not any("\n" in line for _, lines, _ in encoder.asked for line in lines)


def test_without_tokens_words_and_unspaced_characters_are_counted():
    ngrams = NgramEncoder(NgramSettings())
    lines = ["Two words, one comma.", "漢字かなカナ", "naïve1 x", "", "ไทย"]
    assert classification.token_counts(ngrams, lines, "de") == [6, 6, 2, 0, 3]
    assert classification.token_counts(Counted({}), lines[:1], "de") == [12]
    assert classification.split_long(ngrams, ["A b. C d."], "de", 5) == [["A b.", "C d."]]
    assert classification.split_long(ngrams, ["A b. C d."], "de", 6) == [["A b. C d."]]


# --- the checksum and bad input


def test_the_checksum_covers_training_files_and_folders_of_news(copied, tmp_path):
    def sha256(name):
        settings = experiment_of(name, tmp_path / "s", copied(name))
        task = Task(None, settings, "ngram", name, {name: copied(name)})
        return task.header()["data_sha256"]

    for name, path in (
        ("marc", "train/dataset_de_train.json"),
        ("counterfactual", "EN_train.tsv"),
        ("mldoc", "mldoc-indices/german.train.80"),
    ):
        before, path = sha256(name), copied(name) / path
        lines = path.read_text().splitlines()
        path.write_text("".join(f"{line}\n" for line in [*lines[:1], *lines[1:][::-1]]))
        assert sha256(name) != before
    before = sha256("rcv2")
    item = next(copied("rcv2").rglob("german/*/*.xml"))
    shutil.copy(item, item.with_name("999.xml"))
    assert sha256("rcv2") != before


def message_of(name, folder, tmp_path, encoder, **changes):
    changes |= {"system": "ngram", "base": base_of(name, folder)}
    return error_of(tmp_path, name, folder, encoder, **changes)


def test_an_error_names_the_file_and_text_of_an_infinite_embedding(written, topics, tmp_path):
    folder = written("counterfactual")
    text = counterfactual.read_split(folder, "DE", "test")[3].text

    class Broken(TopicEncoder):
        def vector(self, line, language):
            return super().vector(line, language) * (np.nan if line == text else 1)

    message = message_of("counterfactual", folder, tmp_path, Broken(topics))
    assert f"{folder}/DE_test.tsv" in message
    assert "is not finite" in message
    assert text[:60] in message


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "message"),
    [
        ("sib200", "deu_Latn/test.tsv", "\thealth\t", "\tsports\t", "is of the class health; exp"),
        ("counterfactual", "EN_train.tsv", "\t1\n", "\t0\n", "is of the class 1; expected some of"),
    ],
)
def test_an_error_names_the_file_that_lacks_a_class(
    name, file, old, new, message, copied, topics, tmp_path
):
    path = copied(name) / file
    replace_in(path, old, new)
    line = message_of(name, copied(name), tmp_path, TopicEncoder(topics))
    assert line.startswith(f"{path}: ")
    assert message in line


def test_missing_training_files_and_languages_are_errors(written, copied, tmp_path):
    only = {"evalsets": {"mldoc": {"languages": ["de", "fr"]}}}
    message = message_of("mldoc", written("mldoc"), tmp_path, None, **only)
    assert "evalsets.mldoc.languages: ngram is scored on de, fr; expected en and" in message
    (copied("marc") / "train/dataset_fr_train.json").unlink()
    message = message_of("marc", copied("marc"), tmp_path, None)
    assert "train/dataset_fr_train.json" in message
