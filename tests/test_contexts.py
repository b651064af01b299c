"""Laws of learning from documents: contexts, the batches of them, and a training on them."""

import random
from collections import Counter
from itertools import chain, groupby

import numpy as np
import pytest
from made.experiments import changed, one_line
from made.shards import in_order, unpacked, write_shard
from made.train import CONTEXT, Toy, add_documents, rows, validate_model
from safetensors.torch import load_file

from ems.model.encode import SentenceEncoder
from ems.shards.documents import DocumentStore
from ems.shards.reader import PairStore


def write_document_shard(folder, code, documents):
    """A shard in the format on disk; documents are lists of sentences, lists of ids."""
    sentences = [sentence for document in documents for sentence in document]
    counts, ids = [*map(len, documents)], np.concatenate(sentences)
    return write_shard(folder, ids, [*map(len, sentences)], [code], documents=counts)


LANGUAGES = ["en", "de", "zh"]
SIZES = {"en": [[2], [5, 3]], "de": [[4], [2]], "zh": [[2], [7]]}  # of documents in each shard
LONG = 1000  # max_tokens that cut nothing
END = 5  # of each sentence


def write_library(folder, sizes, draw):
    """Shards, and (language, document, place) of each sentence, its id several times, then END."""
    where, folders = {}, []
    for code, shards in sizes.items():
        number = 0
        for at, part in enumerate(shards):
            documents = []
            for size in part:
                documents.append([])
                for place in range(size):
                    where[len(where) + 10] = (code, number, place)
                    documents[-1].append([len(where) + 9] * draw.randint(1, 4) + [END])
                number += 1
            folders.append(write_document_shard(folder / f"{code}{at}", code, documents))
    return folders, where


@pytest.fixture
def library(tmp_path):
    return write_library(tmp_path, SIZES, random.Random(1))


def random_sizes(draw):
    """One to three shards of each language, of one to three documents each."""
    return {
        code: [draw.choices([2, 2, 3, 8], k=draw.randint(1, 3)) for _ in range(draw.randint(1, 3))]
        for code in LANGUAGES
    }


def runs(text):
    """The ids of the sentences of a text."""
    return [token for token, _ in groupby(text) if token != END]


def texts(batch):
    """(language, ids of sentences) of both texts of each pair."""
    return [[(LANGUAGES[of], runs(text)) for of, text in pair] for pair in unpacked(batch)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 100])
def test_a_context_is_the_neighbours_in_its_document(tmp_path, k, seed):
    draw = random.Random(seed)
    folders, where = write_library(tmp_path, random_sizes(draw), draw)
    store = DocumentStore(folders, LANGUAGES, LONG, k)
    size, seen = Counter(place[:2] for place in where.values()), Counter()
    for step in range(100):
        for (code, true), (other_code, replaced) in texts(store.draw(1, step, 16, 0.5)):
            places = [where[token] for token in true]
            (at,) = (n for n, (a, b) in enumerate(zip(true, replaced, strict=True)) if a != b)
            _, document, middle = places[at]
            context = range(max(0, middle - k), min(size[code, document], middle + k + 1))
            assert places == [(code, document, place) for place in context]
            assert other_code == code == where[replaced[at]][0]
            seen[true[at]] += 1
    assert seen.keys() == where.keys(), "not every sentence was drawn"


def test_any_other_sentence_of_the_language_takes_its_place(library):
    folders, where = library
    store, seen = DocumentStore(folders, LANGUAGES, LONG, 1), Counter()
    targets = store.draw(1, 0, 6, 1.0).targets  # the true texts come first
    assert (targets.dtype, targets.tolist()) == (np.float32, [1.0] * 6 + [0.0] * 6)
    for step in range(300):
        for (_, true), (_, replaced) in texts(store.draw(2, step, 32, 0.0)):
            seen.update((a, b) for a, b in zip(true, replaced, strict=True) if a != b)
    for token, (code, _, _) in where.items():
        others = {other for other, place in where.items() if place[0] == code} - {token}
        counts = [seen[token, other] for other in others]
        mean = sum(counts) / len(counts)
        assert min(counts) > 0.4 * mean, "some sentences hardly ever come"
        assert max(counts) < 2 * mean, "some sentences come too often"


def test_a_batch_is_a_function_of_seed_and_step_and_is_shared_by_processes(library):
    first, again = (DocumentStore(library[0], LANGUAGES, LONG, 1) for _ in range(2))
    whole = unpacked(first.draw(3, 7, 8, 1.0))
    assert whole == unpacked(again.draw(3, 7, 8, 1.0))
    assert whole not in [unpacked(first.draw(*key, 8, 1.0)) for key in ((3, 8), (4, 7))]
    halves = [unpacked(first.draw(3, 7, 8, 1.0, part)) for part in (slice(4), slice(4, 8))]
    assert halves[0] + halves[1] == whole


def test_validation_has_every_sentence_once_and_fixed_replacements(library):
    folders, where = library
    store = DocumentStore(folders, LANGUAGES, LONG, 1)
    first, again = ([*chain(*map(texts, in_order(store, 5)))] for _ in range(2))
    assert first == again
    both = [zip(true, replaced, strict=True) for (_, true), (_, replaced) in first]
    assert sorted(next(a for a, b in pair if a != b) for pair in both) == sorted(where)


def fitted(before, middle, after, limit):
    """The text by plain loops: first the far end of the longer side is cut, then of both."""
    middle = middle[:limit]
    before, after = list(before), list(after)
    while len(before) + len(middle) + len(after) > limit:
        if len(before) >= len(after):
            before.pop(0)
        else:
            after.pop()
    return [*before, *middle, *after]


@pytest.mark.parametrize("limit", range(1, 20))
def test_a_long_text_keeps_its_sentence_and_the_nearest_context(tmp_path, limit):
    draw = random.Random(limit)
    documents = [
        [draw.choices(range(10, 99), k=draw.randint(1, 9)) for _ in range(5)] for _ in range(6)
    ]
    shard = write_document_shard(tmp_path / "en", "en", documents)
    store = DocumentStore([shard], ["en"], limit, 2)
    row = 0
    for document in documents:
        for at, sentence in enumerate(document):
            before = [*chain(*document[max(0, at - 2) : at])]
            after = [*chain(*document[at + 1 : at + 3])]
            (place,) = store.places(np.array([0]), np.array([row]))
            text = store.text(*place, np.array(sentence[:limit], np.uint16)).tolist()
            assert text == fitted(before, sentence, after, limit)
            row += 1


def test_wrong_shards_and_single_sentences_are_one_line(library, tmp_path):
    message = one_line(PairStore, library[0], LANGUAGES, LONG)
    assert message.endswith("en0: expected shards of pairs, found documents of one language")
    pairs = write_shard(tmp_path / "de-en", [5, 6, 7], [1, 2])
    message = one_line(DocumentStore, [pairs], LANGUAGES, LONG, 1)
    assert message.endswith("expected shards of documents of one language, found pairs")
    folder = write_document_shard(tmp_path / "en", "en", [[[11, 12]]])
    message = one_line(DocumentStore, [folder], ["en"], LONG, 1)
    assert message.startswith("documents of en: expected at least two sentences")


# --- training


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return add_documents(Toy(tmp_path_factory.mktemp("toy")))


@pytest.fixture(scope="module")
def never_killed(toy, tmp_path_factory):
    return toy.train(tmp_path_factory.mktemp("whole"), **CONTEXT)


@pytest.mark.slow
@pytest.mark.parametrize(  # loss without any knowledge, least accuracy
    ("loss", "blind", "accuracy"), [("cross-entropy", 0.6931, 65), ("printed", 0.5, 53)]
)
def test_the_classifier_learns_which_sentence_fits(loss, blind, accuracy, toy, tmp_path):
    longer = {"steps": 200, "batch_pairs": 16, "schedule": "constant", "validate_every": 200}
    settings = changed(CONTEXT, {"train": longer, "objectives": {"context": {"loss": loss}}})
    first, last = rows(toy.train(tmp_path, **settings), "validation")
    assert first["context"] == pytest.approx(blind, abs=0.2)
    assert last["context"] < 0.9 * first["context"]
    assert first["context_accuracy"] == pytest.approx(50, abs=6)
    assert last["context_accuracy"] > accuracy
    assert last["context"] == last["total"]


def test_the_log_of_training_and_the_validation_of_its_model_agree(toy, never_killed):
    of_pairs, of_texts = ["p1", "p1_by_language"], ["context", "context_accuracy", "total"]
    for row in rows(never_killed, "validation"):
        assert list(row)[3:] == [*of_pairs, *of_texts]
        assert row["p1_by_language"].keys() == {"de", "fr"}
    assert list(rows(never_killed, "train")[-1])[3:] == [*of_texts, "lr"]
    sources = (of_pairs, toy.shards("validation")), (of_texts, toy.documents["validation"])
    for names, shards in sources:
        assert validate_model(never_killed, shards) == {name: row[name] for name in names}


def test_a_model_is_not_validated_on_other_shards(toy, never_killed, tmp_path):
    documents = toy.documents["validation"]
    one_line(validate_model, never_killed, [*documents, *toy.shards("validation")])
    one_line(validate_model, never_killed, documents, tmp_path)
    message = one_line(validate_model, toy.train(tmp_path, train={"steps": 1}), documents)
    assert "documents, for a model trained with `context`" in message


def test_the_model_folder_encodes_with_mean_and_max(never_killed):
    vectors = SentenceEncoder(never_killed).encode(["bako lili", "neba"], "en")
    assert vectors.shape == (2, 32)
    assert load_file(never_killed / "heads.safetensors")["context.weight"].shape == (1, 32)
    assert (vectors[:, 16:] > vectors[:, :16]).all(), "a maximum is no less than the mean"
