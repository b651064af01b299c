"""Laws of the table of vectors and its n-grams: what pieces spell, which rows a sentence has."""

import itertools
import string
import unicodedata

import pytest
import torch
from anyascii import anyascii
from made import shards
from torch.nn import functional

from ems.config.model import EncoderSettings
from ems.model.encoder import Encoder
from ems.model.table import LONGEST, Ngrams, bag_means
from ems.text.subwords import load_vocabulary
from ems.train.job import letters_of

LINES = ["moscow is big, isn't it?", "москва большая", "μόσχα 1984", "日本語の本", "a b", "?!"]
LINES += ["straße und zürich", "x", "मास्को", "monkey-wrench 42, moskva, zurich"]
LATIN = string.ascii_lowercase + string.digits
BUCKETS, WIDTH = 1009, 8
ROMAN = {"москва": "moskva", "большая": "bolshaya", "μόσχα": "moscha", "zürich": "zurich"}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    return load_vocabulary(shards.vocabulary(folder / "v.model", 110, LINES * 5))


@pytest.fixture
def ngrams(vocabulary):
    torch.manual_seed(0)
    made = Ngrams(BUCKETS, WIDTH, vocabulary.get_piece_size())
    made.letters.copy_(letters_of(vocabulary))
    return made


def batch(vocabulary, lines):
    ids = [vocabulary.encode(line) for line in lines]
    return torch.tensor([*itertools.chain(*ids)]), torch.tensor(list(map(len, ids)))


def spelt(vocabulary, line):
    """The words of a line by plain loops, each with a gap at both ends."""
    text = "".join(vocabulary.id_to_piece(at) for at in vocabulary.encode(line))
    words = ""
    for character in text:
        roman = [letter for letter in anyascii(character).lower() if letter in LATIN]
        mute = unicodedata.category(character)[0] in "LM"
        words += "".join(roman) if roman or mute else " "
    return [f" {word} " for word in words.split()]


def hashed(text):
    """FNV's prime as the base of a polynomial, a multiplier, and the highest bits of 64."""
    value = 0
    for letter in text:
        value = (value * 0x100000001B3 + ord(letter)) % 2**64
    value = value * 0x1E3779B97F4A7C15 % 2**64
    return value % 2**63 // 2**24 % BUCKETS


def reference_rows(vocabulary, line):
    return [
        hashed(word[start : start + length])
        for word in spelt(vocabulary, line)
        for length in (2, 3, 4)
        for start in range(len(word) - length + 1)
    ]


def test_the_rows_of_each_sentence_equal_plain_loops_in_any_batch(vocabulary, ngrams):
    for lines in (LINES, LINES[::-1], [LINES[3]], ["x"] * 3):
        tokens, lengths = batch(vocabulary, lines)
        rows, counts = ngrams.rows(tokens, lengths)
        expected = [reference_rows(vocabulary, line) for line in lines]
        assert counts.tolist() == [len(each) for each in expected]
        for found, each in zip(rows.split(counts.tolist()), expected, strict=True):
            assert sorted(found.tolist()) == sorted(each)
    assert expected[0]


def test_pieces_spell_latin_letters_digits_and_gaps(vocabulary):
    letters = letters_of(vocabulary)
    assert letters.shape == (vocabulary.get_piece_size(), LONGEST)
    assert letters.dtype == torch.uint8
    for word, roman in ROMAN.items():
        rows = letters[vocabulary.encode(word)]
        assert bytes(rows[rows != 0].tolist()).decode().strip() == roman
    for at in (0, 1, 2, 3):  # <pad>, <unk>, <mask>, <2en>
        assert bytes(letters[at][letters[at] != 0].tolist()) == b" "


def table_encoder(vocabulary, **sizes):
    torch.manual_seed(0)
    small = {"layers": 0, "width": 12, "heads": 3, "feed_forward": 20, "max_tokens": 40}
    settings = EncoderSettings(**{**small, "dropout": 0, "attention_dropout": 0, **sizes})
    encoder = Encoder(settings, vocabulary.get_piece_size())
    if settings.ngrams:
        encoder.table.ngrams.letters.copy_(letters_of(vocabulary))
    return encoder


def ascending(vocabulary):
    return batch(vocabulary, sorted(LINES, key=lambda line: len(vocabulary.encode(line))))


@pytest.mark.parametrize("buckets", [0, BUCKETS])
def test_a_table_is_the_mean_of_pieces_plus_four_times_the_mean_of_ngrams(vocabulary, buckets):
    encoder = table_encoder(vocabulary, table=WIDTH, ngrams=buckets)
    tokens, lengths = ascending(vocabulary)
    states, vectors = encoder.both(tokens, lengths)
    assert states is None
    table, start = encoder.table, 0
    for length, vector in zip(lengths.tolist(), vectors, strict=True):
        own = tokens[start : start + length]
        start += length
        expected = table.pieces.weight[own].sum(0) / length
        if buckets:
            rows = table.ngrams.rows(own, torch.tensor([length]))[0].tolist()
            for row in rows:
                expected = expected + 4 * table.ngrams.table.weight[row] / len(rows)
        assert torch.allclose(vector, expected, atol=1e-7)
    assert not hasattr(encoder, "tokens")  # no unused weights are trained


def test_the_gradient_of_means_of_rows_is_pytorchs():
    draw = torch.Generator().manual_seed(1)
    counts = torch.tensor([3, 0, 40, 1, 0])
    rows = torch.randint(0, 9, (44,), generator=draw)
    tables = [torch.randn(12, 5, generator=draw, dtype=torch.float64, requires_grad=True)]
    tables.append(tables[0].detach().clone().requires_grad_())
    weight = torch.randn(5, 5, generator=draw, dtype=torch.float64)
    means = bag_means(tables[0], rows, counts)
    expected = functional.embedding_bag(rows, tables[1], counts.cumsum(0) - counts, mode="mean")
    assert torch.equal(means, expected)
    for values in (means, expected):
        (values * weight).sum().backward()
    assert torch.allclose(tables[0].grad, tables[1].grad, rtol=0, atol=1e-12)
    assert not tables[0].grad[9:].any()
    assert tables[0].grad[:9].all()


def test_layers_start_at_zero_and_add_a_linear_map_of_their_mean_to_the_table(vocabulary):
    encoder = table_encoder(vocabulary, layers=2, table=WIDTH, ngrams=BUCKETS).double()
    assert not encoder.widen.weight.any()
    torch.nn.init.normal_(encoder.widen.weight)
    alone = table_encoder(vocabulary, layers=2).double()
    names = dict(alone.named_parameters())
    alone.load_state_dict({k: v for k, v in encoder.state_dict().items() if k in names})
    tokens, lengths = ascending(vocabulary)
    means = alone(tokens, lengths)
    wide = encoder.table(tokens, lengths)
    assert torch.allclose(encoder(tokens, lengths), wide + means @ encoder.widen.weight.T)


def test_the_letters_are_saved_with_the_weights(vocabulary):
    first = table_encoder(vocabulary, table=WIDTH, ngrams=BUCKETS)
    sizes = EncoderSettings(layers=0, table=WIDTH, ngrams=BUCKETS)
    second = Encoder(sizes, vocabulary.get_piece_size()).eval()
    second.load_state_dict(first.state_dict())
    tokens, lengths = ascending(vocabulary)
    assert torch.equal(first(tokens, lengths), second(tokens, lengths))
