"""Laws of settings that cannot be meant together: one line before any job, not a silent result."""

import pytest
from experiments_made import MINIMAL, Settings, changed

PARACRAWL = {"version": "v5"}
EMBEDDED = changed(MINIMAL, {"sources": {"paracrawl": "embedded"}})
REFUSED = [
    # no pair could pass
    ({"clean": {"min_characters": 9, "max_characters": 8}}, "clean.min_characters: 9", "8"),
    ({"clean": {"min_words": 9, "max_words": 8}}, "clean.min_words: 9", "8"),
    ({"clean": {"min_characters": 9, "max_bytes": 8}}, "clean.min_characters: 9", "max_bytes: 8"),
    ({"clean": {"min_words": 5, "max_characters": 8}}, "clean.min_words: 5", "max_characters: 8"),
    ({"clean": {"max_ratio": 0.5}}, "clean.max_ratio: 0.5", "at least 1"),
    # the vocabulary has no room for text
    ({"vocabulary": {"size": 262, "byte_fallback": True}}, "vocabulary.size: 262", "262"),
    (
        {
            "vocabularies": {"de": {"languages": ["en", "de"], "byte_fallback": True, "size": 200}},
            "systems": {"ems": {"vocabulary": "de"}},
        },
        "vocabularies.de.size: 200",
        "261",
    ),
    # a rate of 0 for the rest of a training
    (
        {"train": {"steps": 100, "schedule": "linear", "schedule_steps": 99}},
        "systems.ems: train.schedule_steps: 99",
        "100",
    ),
    (
        {"systems": {"ems": {"train": {"schedule": "cosine", "schedule_steps": 9}}}},
        "systems.ems: train.schedule_steps: 9",
        "10",
    ),
    # more queries than sentences
    (
        {"evalsets": {"paracrawl": {**PARACRAWL, "protocol": {"queries": 61, "candidates": 60}}}},
        "evalsets.paracrawl.protocol.queries: 61",
        "60 candidates",
    ),
    (
        {"evalsets": {"paracrawl": {**PARACRAWL, "protocol": {"candidates": 1999}}}},
        "evalsets.paracrawl.protocol.queries: 2,000",
        "1,999 candidates",
    ),
]
TAKEN = [
    {"clean": {"min_characters": 8, "max_characters": 8}},
    {"clean": {"min_characters": 9, "max_characters": 0}},  # 0 is no limit
    {"clean": {"min_words": 5, "max_characters": 9}},
    {"clean": {"max_ratio": 1}},
    {"clean": {"max_ratio": 0}},
    {"vocabulary": {"size": 263, "byte_fallback": True}},
    {"train": {"steps": 100, "schedule": "linear", "schedule_steps": 100}},
    {"train": {"steps": 100, "schedule": "constant", "schedule_steps": 9}},  # of other systems
    {"train": {"steps": 0, "schedule": "linear", "schedule_steps": 9}},
    {"train": {"steps": 10, "warmup_steps": 99, "validate_every": 99, "checkpoint_every": 99}},
    {"evalsets": {"paracrawl": {**PARACRAWL, "protocol": {"queries": 60, "candidates": 60}}}},
]


@pytest.mark.parametrize(("changes", "key", "words"), REFUSED, ids=[case[1] for case in REFUSED])
def test_what_cannot_be_meant_together_is_one_line(tmp_path, changes, key, words):
    message = Settings(tmp_path).told(changed(EMBEDDED, changes))
    assert key in message
    assert words in message


@pytest.mark.parametrize("changes", TAKEN, ids=str)
def test_what_can_be_meant_is_taken(tmp_path, changes):
    assert Settings(tmp_path).load(changed(EMBEDDED, changes)).name == "mine"


def test_a_training_that_ends_within_its_warm_up_says_so(toy, tmp_path, caplog):
    toy.train(tmp_path / "short", train={"steps": 2, "warmup_steps": 3})
    assert "train.warmup_steps: 3, but the training ends after 2" in caplog.text
    caplog.clear()
    toy.train(tmp_path / "whole", train={"steps": 2, "warmup_steps": 2})
    assert "train.warmup_steps: " not in caplog.text
