"""Laws of the embeddings of documents: one for each, whatever its length."""

import numpy as np
import pytest
from classified_made import TopicEncoder
from experiments_made import Settings

from ems.bench.baselines import CharNgramEncoder
from ems.bench.task import Task
from ems.benchmarks.families.classification import embed_documents, split_long, token_counts


class Counted(TopicEncoder):
    """An encoder with token ids: three for each word."""

    def token_counts(self, lines, language):
        return [3 * len(line.split()) for line in lines]

    def vector(self, line, language):
        return np.array([len(line), line.count("a"), 1.0])


def task_with(encoder, tmp_path, split):
    value = {"documents": {"split": split}}
    experiment = Settings(tmp_path / "s").changed(**value)
    return Task(encoder, experiment, "ngram", "tatoeba", {"tatoeba": tmp_path})


LONG = "A first one. And a second!\nThird line"
TEXTS = ["short a", LONG, "just\nso", "naïve ones? Yes. No"]


@pytest.mark.parametrize("limit", [0, 5, 20, 1000])
def test_a_document_of_too_many_tokens_is_the_mean_of_its_sentences(limit, tmp_path):
    cut = {
        "short a": ["short a"],
        LONG: ["A first one.", "And a second!", "Third line"],
        "just\nso": ["just", "so"],
        "naïve ones? Yes. No": ["naïve ones?", "Yes.", "No"],
    }
    expected = []
    for text in TEXTS:
        many = limit and 3 * len(text.split()) > limit
        lines = cut[text] if many else [" ".join(text.split())]
        vectors = [(len(line), line.count("a"), 1.0) for line in lines]
        expected.append([sum(column) / len(vectors) for column in zip(*vectors, strict=True)])
    encoder = Counted()
    found = embed_documents(task_with(encoder, tmp_path, limit), TEXTS, "de", "here")
    assert found == pytest.approx(np.array(expected))
    assert found.dtype == np.float32
    assert not any("\n" in line for _, lines, _ in encoder.asked for line in lines)


def test_an_encoder_without_token_ids_is_counted_by_words_and_unspaced_characters():
    lines = ["Two words, one comma.", "漢字かなカナ", "naïve1 x", "", "ไทย"]
    assert token_counts(CharNgramEncoder(), lines, "de") == [6, 6, 2, 0, 3]
    assert token_counts(Counted(), lines[:1], "de") == [12]
    assert split_long(CharNgramEncoder(), ["A b. C d."], "de", 5) == [["A b.", "C d."]]
    assert split_long(CharNgramEncoder(), ["A b. C d."], "de", 6) == [["A b. C d."]]
