"""Laws of batches out of documents: contexts stay in their document, others take their place."""

import random
from collections import Counter
from itertools import chain, groupby

import numpy as np
import pytest
from made.documents import write_document_shard
from made.experiments import one_line
from made.shards import in_order, unpacked, write_shard

from ems.base.errors import Damaged
from ems.shards.documents import DocumentStore
from ems.shards.reader import PairStore
from ems.shards.shard import Shard

LANGUAGES = ["en", "de", "zh"]
SIZES = {  # sentences of each document, shard by shard
    "en": [[2], [5, 3]],
    "de": [[4], [2]],
    "zh": [[2], [7]],
}
LONG = 1000  # max_tokens that cut nothing
END = 5  # of each sentence


def write_library(folder, sizes, draw):
    """Write shards, and return them and (language, document, place) of each sentence by its id; a
    sentence is its id, several times, and END.
    """
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
    """Draw the sizes of documents: one to three shards of a language, of one to three documents."""
    return {
        code: [
            [draw.choice([2, 2, 3, 8]) for _ in range(draw.randint(1, 3))]
            for _ in range(draw.randint(1, 3))
        ]
        for code in LANGUAGES
    }


def runs(text):
    """The ids of the sentences of a text."""
    return [token for token, _ in groupby(text) if token != END]


def texts(batch):
    """(language, ids of sentences) of both texts of each pair."""
    return [[(LANGUAGES[of], runs(text)) for of, text in pair] for pair in unpacked(batch)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 2, 100])
def test_a_context_is_its_neighbours_and_never_leaves_its_document_or_language(tmp_path, k, seed):
    draw = random.Random(seed)
    folders, where = write_library(tmp_path, random_sizes(draw), draw)
    store = DocumentStore(folders, LANGUAGES, LONG, k)
    size = {
        place[:2]: 1 + max(p[2] for p in where.values() if p[:2] == place[:2])
        for place in where.values()
    }
    seen = Counter()
    for step in range(100):
        for (code, true), (other_code, replaced) in texts(store.draw(1, step, 16, 0.5)):
            places = [where[token] for token in true]
            assert {place[:2] for place in places} == {(code, places[0][1])}
            numbers = [place[2] for place in places]
            assert numbers == list(range(numbers[0], numbers[-1] + 1))
            (at,) = (n for n, (a, b) in enumerate(zip(true, replaced, strict=True)) if a != b)
            middle, last = numbers[at], size[places[0][:2]] - 1
            assert (numbers[0], numbers[-1]) == (max(0, middle - k), min(last, middle + k))
            assert other_code == code == where[replaced[at]][0]
            seen[true[at]] += 1
    assert seen.keys() == where.keys(), "not every sentence was drawn"


def test_the_true_text_comes_first_and_each_pair_has_one_of_each(library):
    batch = DocumentStore(library[0], LANGUAGES, LONG, 2).draw(1, 0, 6, 1.0)
    assert batch.targets.tolist() == [1.0] * 6 + [0.0] * 6
    assert batch.targets.dtype == np.float32


def test_another_sentence_of_the_language_takes_its_place_all_alike(library):
    folders, where = library
    store, seen = DocumentStore(folders, LANGUAGES, LONG, 1), Counter()
    for step in range(300):
        for (_, true), (_, replaced) in texts(store.draw(2, step, 32, 0.0)):
            seen.update((a, b) for a, b in zip(true, replaced, strict=True) if a != b)
    for token, (code, _, _) in where.items():
        others = {other for other, place in where.items() if place[0] == code} - {token}
        counts = [seen[token, other] for other in others]
        mean = sum(counts) / len(counts)
        assert min(counts) > 0.4 * mean, "some sentences hardly ever come"
        assert max(counts) < 2 * mean, "some sentences come too often"


def content(batch):
    return [part.tolist() for part in (batch.tokens, batch.lengths, batch.rows, batch.targets)]


def test_a_batch_is_a_function_of_the_seed_and_the_step(library):
    first, again = (DocumentStore(library[0], LANGUAGES, LONG, 1) for _ in range(2))
    assert content(first.draw(3, 7, 8, 1.0)) == content(again.draw(3, 7, 8, 1.0))
    assert content(first.draw(3, 7, 8, 1.0)) != content(first.draw(3, 8, 8, 1.0))
    assert content(first.draw(3, 7, 8, 1.0)) != content(first.draw(4, 7, 8, 1.0))


def test_processes_share_the_pairs_of_a_step(library):
    store = DocumentStore(library[0], LANGUAGES, LONG, 1)
    whole = unpacked(store.draw(3, 7, 8, 1.0))
    halves = [unpacked(store.draw(3, 7, 8, 1.0, part)) for part in (slice(4), slice(4, 8))]
    assert halves[0] + halves[1] == whole


def test_validation_has_every_sentence_once_and_always_the_same_others(library):
    folders, where = library
    store = DocumentStore(folders, LANGUAGES, LONG, 1)
    first, again = ([texts(batch) for batch in in_order(store, 5)] for _ in range(2))
    assert first == again
    middles = [
        next(a for a, b in zip(true, replaced, strict=True) if a != b)
        for batch in first
        for (_, true), (_, replaced) in batch
    ]
    assert sorted(middles) == sorted(where)


def fitted(before, middle, after, limit):
    """The text by plain loops: the far end of the longer side goes first, then of both."""
    middle = middle[:limit]
    before, after = list(before), list(after)
    while len(before) + len(middle) + len(after) > limit:
        if len(before) >= len(after):
            before.pop(0)
        else:
            after.pop()
    return [*before, *middle, *after]


@pytest.mark.parametrize("limit", range(1, 20))
def test_a_text_that_is_too_long_keeps_its_sentence_and_what_is_near_to_it(tmp_path, limit):
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


def test_pairs_are_no_documents_and_documents_no_pairs(library, tmp_path):
    message = one_line(lambda: PairStore(library[0], LANGUAGES, LONG))
    assert message.endswith("en0: expected shards of pairs, found documents of one language")
    pairs = write_shard(tmp_path / "de-en", [5, 6, 7], [1, 2])
    message = one_line(lambda: DocumentStore([pairs], LANGUAGES, LONG, 1))
    assert message.endswith("expected shards of documents of one language, found pairs")


def test_one_sentence_of_a_language_is_an_error_in_one_line(tmp_path):
    folder = write_document_shard(tmp_path / "en", "en", [[[11, 12]]])
    message = one_line(lambda: DocumentStore([folder], ["en"], LONG, 1))
    assert message.startswith("documents of en: expected at least two sentences")


def test_documents_that_do_not_fit_their_sentences_are_found_before_training(library):
    folders, _ = library
    np.array([0, 9, 5], "<i8").tofile(folders[1] / "documents")
    store = DocumentStore(folders, LANGUAGES, LONG, 1)
    with pytest.raises(Damaged, match="documents: row"):
        store.check(1 << 16)
    assert Shard(folders[0]).documents.tolist() == [0, 2]
