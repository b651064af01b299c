"""Laws of the benchmarks that classify documents: what is learnt, chosen by, tested on, told."""

import json
import re
import shutil
from collections import Counter

import classified_made as made
import numpy as np
import pytest
from classified_made import TopicEncoder, experiment_of, run
from experiments_made import Settings
from results_made import by_direction, counts, hits, means

from ems.bench.baselines import CharNgramEncoder
from ems.bench.task import Task
from ems.benchmarks.families.classification import MAJORITY, Reader, drawn
from ems.config import stage_hash
from ems.errors import EmsError
from ems.evalsets.documents import Document, Place

SEVEN = ("de", "es", "fr", "it", "ja", "ru", "zh")
BOTH = {f"{one}-{other}" for x in SEVEN for one, other in (("en", x), (x, "en"))}
THREE = {f"{one}-{other}" for x in ("de", "fr", "ja") for one, other in (("en", x), (x, "en"))}
DIRECTIONS = {
    "mldoc": BOTH,
    "rcv2": BOTH,
    "cls": {f"{pair} {domain}" for pair in THREE for domain in ("books", "dvd", "music")},
    "marc": BOTH - {"en-it", "it-en", "en-ru", "ru-en"},
    "sib200": {"en-en", "en-de", "en-fr"},
    "counterfactual": {"en-en", "en-de", "en-ja"},
}
OF_SIB = {"languages": ["en", "de", "fr"]}
every = pytest.mark.parametrize("name", DIRECTIONS)


@pytest.fixture
def folders(tmp_path):
    """Every benchmark, each in a folder of its name."""
    return {name: write(tmp_path / name) for name, write in made.WRITERS.items()}


def scored(name, folders, tmp_path, encoder=None, **changes):
    more = OF_SIB if name == "sib200" else {}
    return run(name, tmp_path, folders[name], encoder, **{**more, **changes})


# --- what is scored


@every
def test_each_benchmark_has_its_directions_and_a_transfer_that_works_is_seen(
    name, folders, tmp_path
):
    scores = scored(name, folders, tmp_path)
    assert scores.metric == "accuracy"
    assert set(scores.labelled()) == set(scores.details) == DIRECTIONS[name]
    assert scores.parallel == (name == "sib200")
    assert all(value > 90 for value in means(scores).values())
    for direction, seeds in scores.labelled().items():
        assert list(seeds) == ["1", "2"]
        for row in seeds.values():
            assert f"{row.source}-{row.target} {row.split}".strip() == direction
    for chosen in scores.details.values():
        assert [len(chosen[key]) for key in ("epochs", "weight_decay")] == [2, 2]


@every
def test_a_language_whose_classes_lie_elsewhere_is_told_wrong_and_only_it(name, folders, tmp_path):
    encoder = TopicEncoder({"de": 1})
    for direction, accuracy in means(scored(name, folders, tmp_path, encoder)).items():
        source, target = direction.split()[0].split("-")
        same = (source == "de") == (target == "de")
        assert accuracy > 90 if same else accuracy < 10


def test_the_numbers_of_a_direction_agree_with_its_hits(folders, tmp_path):
    encoder = TopicEncoder(noise=0.6)
    scores = scored("mldoc", folders, tmp_path, encoder)
    assert set(counts(scores).values()) == {20}
    for row in (row for row in scores.rows if not row.measure):
        assert row.value == pytest.approx(100 * np.mean(hits(row)))
    assert len({row.value for row in scores.rows}) > 3  # a guard
    for row in json.loads(scores.path.read_text())["rows"]:
        assert ("interval" in row) == ("measure" not in row)
        low, high = row.get("interval", (0, 100))
        assert low <= row["value"] <= high


def test_the_most_frequent_class_of_the_test_part_is_counted(folders, tmp_path):
    path = folders["counterfactual"] / "DE_test.tsv"
    path.write_text(path.read_text().replace("\t0\n", "\t1\n", 3))
    found = means(scored("counterfactual", folders, tmp_path), MAJORITY)
    assert found == {"en-en": 50, "en-de": pytest.approx(100 * 9 / 12), "en-ja": 50}


def test_the_same_inputs_give_the_same_bytes(folders, tmp_path):
    noisy = TopicEncoder(noise=0.6)
    first = scored("mldoc", folders, tmp_path, noisy)
    before = (tmp_path / "scores/mldoc.json").read_bytes()
    scored("mldoc", folders, tmp_path, noisy)
    assert (tmp_path / "scores/mldoc.json").read_bytes() == before
    assert scored("mldoc", folders, tmp_path, noisy, seed=2).rows != first.rows


def test_a_direction_does_not_depend_on_the_other_languages(folders, tmp_path):
    noisy = TopicEncoder(noise=0.6)
    whole = by_direction(scored("mldoc", folders, tmp_path, noisy))
    some = {"evalsets": {"mldoc": {"languages": ["en", "fr"]}}}
    few = by_direction(scored("mldoc", folders, tmp_path, noisy, **some))
    assert few == {name: whole[name] for name in ("en-fr", "fr-en")}


def test_sources_trained_one_by_one_for_lack_of_memory_give_the_same_scores(
    folders, tmp_path, monkeypatch
):
    noisy = TopicEncoder(noise=0.6)
    together = scored("cls", folders, tmp_path, noisy)
    monkeypatch.setattr("ems.benchmarks.families.classification.MOST_BYTES", 1)
    assert scored("cls", folders, tmp_path, noisy) == together


# --- who chooses


def spoil(folder, name):
    """Make the German validation part another one, of which a class is gone where it is unused."""
    if name == "mldoc":
        index = folder / "mldoc-indices"
        shutil.copy(index / "german.train.16", index / "german.dev")
        return
    path, old, new = {
        "marc": ("dev/dataset_de_dev.json", '"stars": "5"', '"stars": "3"'),
        "sib200": ("deu_Latn/dev.tsv", "\thealth\t", "\tsports\t"),
        "counterfactual": ("DE_valid.tsv", "\t1\n", "\t0\n"),
    }[name]
    path = folder / path
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("name", ["mldoc", "marc", "sib200", "counterfactual"])
def test_only_the_source_language_chooses_so_a_spoilt_validation_part_of_the_target_is_not_seen(
    name, folders, tmp_path
):
    noisy = TopicEncoder(noise=0.5)
    before = by_direction(scored(name, folders, tmp_path, noisy))
    spoil(folders[name], name)
    asked = TopicEncoder(noise=0.5)
    after = by_direction(scored(name, folders, tmp_path, asked))
    assert {direction for direction in before if after[direction] != before[direction]} <= {"de-en"}
    read = [what for _, _, what in asked.asked if "valid" in what]
    german = [what for what in read if re.search(" (german|de|deu_Latn|DE) ", what)]
    assert len(read) > len(german)
    assert len(german) == (1 if name in ("mldoc", "marc") else 0)  # as a source, or not at all


def test_a_target_is_read_for_its_test_part_alone(folders, tmp_path):
    listening = TopicEncoder()
    scored("counterfactual", folders, tmp_path, listening)
    parts = Counter(
        (language, line.split()[1]) for language, lines, _ in listening.asked for line in lines
    )
    assert set(parts) == {
        ("en", "train"),
        ("en", "valid"),
        ("en", "test"),
        ("de", "test"),
        ("ja", "test"),
    }


def test_the_test_part_of_the_source_is_what_chooses_in_amazon_version_one(folders, tmp_path):
    experiment = experiment_of("cls", tmp_path / "settings", folders["cls"])
    reader = Reader(Task(TopicEncoder(), experiment, "ngram", "cls", {"cls": folders["cls"]}))
    parts = {
        part: reader.examples(Place("jp", "dvd", part)).texts for part in ("train", "valid", "test")
    }
    assert all("jp dvd train" in words for words in parts["train"])
    assert parts["valid"] == parts["test"]
    assert all("jp dvd test" in words for words in parts["test"])
    assert parts["train"][0].startswith("Titel\n")


# --- which documents


def reader_of(name, folders, tmp_path, **probe):
    changes = {"probes": {name: probe}} if probe else {}
    experiment = experiment_of(name, tmp_path / "settings", folders[name], **changes)
    return Reader(Task(TopicEncoder(), experiment, "ngram", name, {name: folders[name]}))


def test_reviews_to_learn_from_are_drawn_half_of_each_class_and_never_three_stars(
    folders, tmp_path
):
    reader = reader_of("marc", folders, tmp_path)
    found = reader.examples(Place("de", "", "train"))
    assert Counter(found.labels) == {0: 6, 1: 6}
    assert all(
        f"topic{label} " in text for label, text in zip(found.labels, found.texts, strict=True)
    )
    assert len(set(found.texts)) == 12
    assert reader.examples(Place("de", "", "train")) == found
    assert Counter(reader.examples(Place("de", "", "test")).labels) == {0: 8, 1: 8}
    with pytest.raises(EmsError, match=r"dataset_de_train.json: expected at least 17 documents"):
        reader_of("marc", folders, tmp_path, train=34).examples(Place("de", "", "train"))


def test_headlines_are_drawn_once_and_no_part_shares_one(folders, tmp_path):
    reader = reader_of("rcv2", folders, tmp_path)
    parts = [reader.examples(Place("german", "", part)) for part in ("train", "valid", "test")]
    assert [len(part.texts) for part in parts] == [20, 20, 20]
    texts = [text for part in parts for text in part.texts]
    assert len(set(texts)) == 60
    assert all("title" in text for text in texts)
    again = reader_of("rcv2", folders, tmp_path)
    assert again.examples(Place("german", "", "test")) == parts[2]
    with pytest.raises(EmsError, match=r"german: expected at least 1,036 documents .* found 60"):
        reader_of("rcv2", folders, tmp_path, train=996).examples(Place("german", "", "train"))


def test_each_document_is_as_likely_to_be_drawn(tmp_path):
    documents = [Document("", "", str(at)) for at in range(20)]
    counts = Counter(
        document.text
        for seed in range(2000)
        for document in drawn(documents, 5, str(seed), tmp_path)
    )
    assert len(counts) == 20
    assert all(400 < count < 600 for count in counts.values())


@pytest.mark.parametrize(("title", "start"), [(True, "no topic here\nde dev"), (False, "de dev")])
def test_news_are_read_with_their_headline_only_if_asked_to(title, start, tmp_path):
    folder = made.write_mldoc(tmp_path / "mldoc")
    reader = reader_of("mldoc", {"mldoc": folder}, tmp_path, title=title)
    assert reader.examples(Place("german", "", "valid")).texts[0].startswith(start)


# --- hashes


def test_a_setting_of_a_benchmarks_classifier_changes_the_hash_of_that_benchmark_alone(
    folders, tmp_path
):
    def hashes(**changes):
        sets = {name: {"version": "v1", "path": str(folders[name])} for name in ("mldoc", "cls")}
        more = {"evalsets": sets, "benchmarks": ["tatoeba", "mldoc", "cls"]}
        more["languages"] = made.LANGUAGES
        more["probes"] = {"mldoc": {"train": 16}}
        more["decontaminate"] = {"against": []}
        value = made.changed(made.MINIMAL | {"evalsets": {}}, more)
        value["evalsets"]["tatoeba"] = {"version": "toy"}
        experiment = Settings(tmp_path / "s").load(made.changed(value, changes))
        return {
            name: stage_hash(experiment, "bench", system="ngram", benchmark=name)
            for name in experiment.benchmarks
        }

    before = hashes()
    for changes, expected in (
        ({"probes": {"mldoc": {"epochs": 3}}}, {"mldoc"}),
        ({"probes": {"cls": {"hidden": [3]}}}, {"cls"}),
        ({"documents": {"split": 0}}, {"mldoc", "cls"}),
        ({"seed": 5}, {"mldoc", "cls"}),
    ):
        after = hashes(**changes)
        assert {name for name in after if after[name] != before[name]} == expected


def test_the_score_file_is_of_the_files_learnt_from_and_of_the_news_in_the_folders(
    folders, tmp_path
):
    def found(name):
        return scored(name, folders, tmp_path).data_sha256

    for name, path in (
        ("marc", "train/dataset_de_train.json"),
        ("counterfactual", "EN_train.tsv"),
        ("mldoc", "mldoc-indices/german.train.16"),
    ):
        before, path = found(name), folders[name] / path
        lines = path.read_text().splitlines()
        path.write_text("".join(f"{line}\n" for line in [*lines[:1], *lines[1:][::-1]]))
        assert found(name) != before
    before = found("rcv2")
    made.write_news(folders["rcv2"], "de", 999, "CCAT", "x", "topic0 of4")
    assert found("rcv2") != before


# --- bad input


def told(name, folders, tmp_path, encoder=None, **changes):
    with pytest.raises(EmsError) as error:
        scored(name, folders, tmp_path, encoder, **changes)
    assert not (tmp_path / "scores" / f"{name}.json").exists()
    return str(error.value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_embedding_that_is_not_finite_is_told_with_its_file_and_its_text(
    value, folders, tmp_path
):
    class Broken(TopicEncoder):
        def vector(self, line, language):
            found = super().vector(line, language)
            return found * value if "DE test item 3" in line else found

    message = told("counterfactual", folders, tmp_path, Broken())
    assert f"{folders['counterfactual']}/DE_test.tsv" in message
    assert "is not finite" in message
    assert "DE test item 3" in message


SPOILT = [
    ("sib200", "eng_Latn/train.tsv", "\thealth\t", "\tlaw\t", "found the category 'law'; expected"),
    ("counterfactual", "DE_test.tsv", "\t1\n", "\t2\n", "found the label '2'; expected 0 or 1"),
    (
        "counterfactual",
        "EN_train.tsv",
        "\t1\n",
        "\t0\n",
        "is of the class 1; expected some of each",
    ),
    ("sib200", "deu_Latn/test.tsv", "\thealth\t", "\tsports\t", "is of the class health; expected"),
    ("marc", "dev/dataset_en_dev.json", '"4"', '"6"', "line 4: expected a JSON object with stars"),
    ("cls", "jp/dvd/test.review", "5.0", "3.0", "a review with the rating '3.0'; expected"),
    ("cls", "jp/dvd/train.review", "5.0", "1.0", "is of the class positive; expected some of each"),
]


@pytest.mark.parametrize(("name", "file", "old", "new", "message"), SPOILT)
def test_an_unknown_label_and_a_class_without_examples_are_told_with_their_file(
    name, file, old, new, message, folders, tmp_path
):
    path = folders[name] / file
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))
    found = told(name, folders, tmp_path)
    assert found.startswith(f"{path}: ")
    assert message in found


def test_a_missing_training_file_is_told_before_anything_runs(folders, tmp_path):
    (folders["marc"] / "train/dataset_fr_train.json").unlink()
    assert "train/dataset_fr_train.json" in told("marc", folders, tmp_path)


def test_without_english_or_another_language_there_is_no_direction(folders, tmp_path):
    only = {"evalsets": {"mldoc": {"languages": ["de", "fr"]}}}
    message = told("mldoc", folders, tmp_path, **only)
    assert "evalsets.mldoc.languages: ngram is scored on de, fr; a direction needs en" in message


def test_the_baseline_of_character_ngrams_can_be_scored(folders, tmp_path):
    scores = scored("sib200", folders, tmp_path, CharNgramEncoder())
    assert means(scores)["en-en"] > 50
