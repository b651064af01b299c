"""Settings that are allowed one by one, but cannot be meant together."""

from collections.abc import Mapping
from typing import Any

from ems.config.experiment import SHARED, Vocabulary
from ems.errors import EmsError

CONTROL = 3  # pieces that are no text: <pad>, <unk>, <mask>, and one of each language
BYTES = 256  # pieces of `byte_fallback`


def check_clean(clean: Mapping[str, Any]) -> None:
    """Raise `EmsError` for limits that no sentence keeps; 0 is no limit."""
    characters = {
        "min_characters": clean["min_characters"],
        "min_words": 2 * clean["min_words"] - 1,
    }
    limits = [("min_words", clean["min_words"], "max_words")]
    limits += [(low, least, "max_characters") for low, least in characters.items()]
    limits += [(low, least, "max_bytes") for low, least in characters.items()]
    for low, least, high in limits:
        if 0 < clean[high] < least:
            raise EmsError(
                f"clean.{low}: {clean[low]} with clean.{high}: {clean[high]} leaves no sentence; "
                "lower the one or raise the other"
            )
    if 0 < clean["max_ratio"] < 1:
        raise EmsError(
            f"clean.max_ratio: {clean['max_ratio']}, but the longer side by the shorter is at "
            "least 1; 0 is no limit"
        )


def check_vocabulary(name: str, vocabulary: Vocabulary) -> None:
    """Raise `EmsError` for a vocabulary that has no piece left for text."""
    settings = vocabulary.settings
    taken = CONTROL + len(vocabulary.languages) + BYTES * settings["byte_fallback"]
    if settings["size"] <= taken:
        key = "vocabulary" if name == SHARED else f"vocabularies.{name}"
        raise EmsError(
            f"{key}.size: {settings['size']}, but {taken} pieces are no text: {CONTROL}, a token "
            "of each language, and the bytes of byte_fallback; raise it"
        )


def check_schedule(key: str, train: Mapping[str, Any]) -> None:
    """Raise `EmsError` when the learning rate of the system at `key` is 0 before the last step."""
    period, steps = train.get("schedule_steps"), train["steps"]
    if period and period < steps and train["schedule"] != "constant":
        raise EmsError(
            f"{key}: train.schedule_steps: {period:,}, after which the learning rate is 0, but "
            f"train.steps is {steps:,}; raise the one or lower the other"
        )


def check_protocol(key: str, protocol: Mapping[str, Any]) -> None:
    """Raise `EmsError` for more queries than there are sentences to draw them from."""
    queries, candidates = (protocol.get(name, 0) for name in ("queries", "candidates"))
    if queries > candidates:
        raise EmsError(
            f"{key}.queries: {queries:,} of {candidates:,} candidates cannot be drawn; lower it"
        )
