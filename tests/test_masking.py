"""Laws of masking: a pure function of (seed, step), one token of one side, BERT's shares."""

import numpy as np
import pytest
import torch
from made.objectives import batch_of, system_settings

from ems.model.objectives.masking import Masker, Pieces, sentence_keys
from ems.model.objectives.system import System
from ems.shards.reader import Batch
from ems.text.subwords import MASK

SIZE, LANGUAGES, LONGEST = 60, 4, 30
FIRST = 3 + LANGUAGES  # the first piece of text
WORDS = np.arange(SIZE) >= FIRST + 10  # ten pieces are punctuation
PIECES = Pieces(np.arange(SIZE) >= FIRST, WORDS)
MODEL = {"layers": 1, "width": 8, "heads": 2, "feed_forward": 8, "max_tokens": LONGEST}


def batch(pairs=40, seed=0, least=1, pieces=(FIRST, SIZE)):
    """Sentences of random length and content, shortest first, as a store gives them."""
    random = np.random.default_rng(seed)
    lengths = random.integers(least, LONGEST + 1, 2 * pairs)
    rows = np.lexsort((np.arange(2 * pairs), lengths))
    tokens = random.integers(*pieces, lengths.sum())
    return Batch(tokens, lengths[rows], rows, random.integers(0, LANGUAGES, 2 * pairs))


def row_of(made):
    return np.repeat(made.rows, made.lengths)


def taken(made, pairs):
    """The part of a batch that holds these neighbouring pairs, numbered anew."""
    keep = np.isin(made.rows % made.pairs, pairs)
    side, pair = divmod(made.rows[keep], made.pairs)
    tokens = made.tokens[np.isin(row_of(made) % made.pairs, pairs)]
    rows = pair - pairs[0] + len(pairs) * side
    return Batch(tokens, made.lengths[keep], rows, np.zeros(2 * len(pairs), np.int64))


# --- one token of each pair


@pytest.mark.parametrize("hide", ["one", "word"])
def test_one_token_of_one_side_of_each_pair_becomes_the_mask_and_no_other_changes(hide):
    made = batch()
    masked = Masker(hide, PIECES, LONGEST)(made, 1, 2)
    assert np.flatnonzero(masked.inputs != made.tokens).tolist() == sorted(masked.places)
    assert (masked.inputs[masked.places] == MASK).all()
    assert (row_of(made)[masked.places] % made.pairs).tolist() == list(range(made.pairs))
    assert np.array_equal(masked.tokens, made.tokens)  # the labels are kept


def test_sides_and_positions_are_uniform():
    made, sides, counts = batch(pairs=20, least=LONGEST), [], np.zeros(LONGEST)
    starts = np.cumsum(made.lengths) - made.lengths
    for step in range(400):
        places = Masker("one", PIECES, LONGEST)(made, 1, step).places
        sides.append((row_of(made)[places] >= made.pairs).mean())
        np.add.at(counts, places - np.repeat(starts, made.lengths)[places], 1)
    assert np.mean(sides) == pytest.approx(0.5, abs=0.02)
    assert counts / counts.sum() == pytest.approx(np.full(LONGEST, 1 / LONGEST), abs=0.01)


def test_punctuation_is_masked_only_where_a_sentence_has_nothing_else():
    made = batch(pairs=300, least=1)
    places = Masker("word", PIECES, LONGEST)(made, 1, 2).places
    words_of = np.bincount(row_of(made), WORDS[made.tokens], 2 * made.pairs)
    chosen = words_of[row_of(made)[places]]
    assert (WORDS[made.tokens[places]] == (chosen > 0)).all()
    assert {True, False} == set((chosen > 0).tolist())
    anything = Masker("one", PIECES, LONGEST)(made, 1, 2).places
    assert not WORDS[made.tokens[anything]].all()  # the authors' code of EMS masks it as well


def test_every_word_of_a_sentence_is_masked_at_times_and_equally_often():
    tokens = np.array([FIRST, SIZE - 1, FIRST + 1, SIZE - 2, SIZE - 3] * 2)
    made = Batch(tokens, np.array([5, 5]), np.array([0, 1]), np.array([0, 1]))
    masker = Masker("word", PIECES, LONGEST)
    places = [int(masker(made, 1, step).places[0]) for step in range(1200)]
    counts = np.bincount(places, minlength=10)
    assert set(np.flatnonzero(counts)) == {1, 3, 4, 6, 8, 9}
    assert counts[counts > 0] == pytest.approx(np.full(6, 200), abs=60)


# --- BERT's


def test_mlm_hides_15_percent_of_each_sentence_and_at_least_one_token():
    made = batch()
    masked = Masker("mlm", PIECES, LONGEST)(made, 1, 2)
    assert (np.diff(masked.places) > 0).all()
    counts = np.bincount(row_of(made)[masked.places], minlength=2 * made.pairs)
    lengths = np.zeros(2 * made.pairs, int)
    lengths[made.rows] = made.lengths
    assert counts.tolist() == [max(1, round(0.15 * length)) for length in lengths]


def test_of_these_80_percent_are_the_mask_and_10_a_random_piece_of_text_and_10_stay():
    made = batch(pairs=4000, pieces=(FIRST, FIRST + 1))  # one piece, so that random ones show
    masked = Masker("mlm", PIECES, LONGEST)(made, 1, 2)
    seen = masked.inputs[masked.places]
    others = seen[(seen != MASK) & (seen != FIRST)]
    assert (seen == MASK).mean() == pytest.approx(0.8, abs=0.01)
    assert len(others) / len(seen) == pytest.approx(0.1, abs=0.01)
    assert set(others) == set(range(FIRST + 1, SIZE))
    untouched = np.ones(len(made.tokens), bool)
    untouched[masked.places] = False
    assert np.array_equal(masked.inputs[untouched], made.tokens[untouched])


# --- pure functions

HIDES = ["one", "word", "mlm"]


@pytest.mark.parametrize("hide", HIDES)
def test_masks_are_a_function_of_seed_and_step_and_differ_between_them(hide):
    masker, made = Masker(hide, PIECES, LONGEST), batch()
    first, again = masker(made, 1, 2), masker(made, 1, 2)
    assert np.array_equal(first.inputs, again.inputs)
    for other in (masker(made, 1, 3), masker(made, 2, 2)):
        assert not np.array_equal(first.inputs, other.inputs)


def test_masks_do_not_follow_the_random_numbers_of_the_draw():
    """A draw takes the first ones of its seed and step."""
    made = batch()
    places = Masker("one", PIECES, LONGEST)(made, 1, 2).places
    first_side = row_of(made)[places] < made.pairs
    numbers = np.random.Generator(np.random.Philox(key=[1, 2])).random(made.pairs)
    assert len({*(first_side == (numbers < 0.5)).tolist()}) == 2


@pytest.mark.parametrize("hide", HIDES)
def test_processes_that_share_a_step_mask_what_one_would(hide):
    masker, made = Masker(hide, PIECES, LONGEST), batch(pairs=12)
    whole = masker(made, 1, 2)
    for first in (0, 4, 8):
        pairs = list(range(first, first + 4))
        part = masker(taken(made, pairs), 1, 2, first, 12)
        assert np.array_equal(part.inputs, whole.inputs[np.isin(row_of(made) % 12, pairs)])


# --- systems


def system(train=None, **objectives):
    off = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}}
    torch.manual_seed(0)
    settings = system_settings(MODEL, {**off, **objectives}, train)
    return System(settings, LANGUAGES, SIZE, classes=PIECES)


ON = {"weight": 1}
NEEDS = [
    ({"xtr": ON}, {}, None),
    ({"xtr": ON, "contrastive": ON, "align": ON, "similarity": ON}, {}, None),
    ({"ugt": ON}, {}, "word"),
    ({"smlm": ON, "xtr": ON}, {}, "word"),
    ({"mlm": ON, "xtr": ON}, {}, "mlm"),
    ({"xtr": ON}, {"input_mask": "one"}, "one"),
    ({"ugt": ON}, {"input_mask": "one"}, "word"),
]


@pytest.mark.parametrize(("objectives", "train", "hide"), NEEDS)
def test_tokens_are_masked_where_an_objective_needs_it_and_nowhere_else(objectives, train, hide):
    masker = system(train, **objectives).masker
    assert (masker and masker.hide) == hide


# --- keys of sentences


def test_two_sentences_have_the_same_key_exactly_when_they_have_the_same_tokens():
    texts = [[5, 6], [6, 5], [5], [5, 6, 6], [6, 5], [5, 6], [5, 5], [0], [0, 0], [11]]
    keys = sentence_keys(batch_of([{"language": 0, "tokens": t, "input": t} for t in texts]))
    same = np.array([[one == other for other in texts] for one in texts])
    assert np.array_equal(keys[:, None] == keys[None, :], same)


def test_a_hundred_thousand_different_sentences_have_different_keys():
    tokens = np.stack([np.arange(100_000) // 300, np.arange(100_000) % 300], 1).flatten()
    count = len(tokens) // 2
    made = Batch(tokens, np.full(count, 2), np.arange(count), np.zeros(count, np.int64))
    assert len(np.unique(sentence_keys(made))) == count
