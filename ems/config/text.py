"""The settings `clean`, `decontaminate` and `vocabulary`."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from ems.base.errors import EmsError
from ems.base.schema import (
    Name,
    Settings,
    SomeLanguages,
    SourceName,
    by_type,
    listing,
    number,
    whole,
)

CONTROL = 3  # pieces that are no text: <pad>, <unk>, <mask>, and one of each language
BYTES = 256  # pieces of `byte_fallback`
Limit = whole(ge=0, le=1_000_000)  # a million letters are a book


class OfCorpora(Settings):
    """A filter that may be for some of the corpora only."""

    LATER: ClassVar = frozenset({"corpora"})
    corpora: listing(Name) = Field([])
    """Names of its corpora (default: all)."""


class LanguageFilter(OfCorpora):
    """Removes pairs with a side in another language, found by the package py3langid.

    Needs the extra `lid`. A side whose language the package does not know stays.
    """

    threshold: number(ge=0, le=1) = 0.5
    """Least probability of the other language."""
    swapped: Literal["drop", "swap"] = "drop"
    """What to do with a pair whose sides are each in the language of the other."""


class SimilarityFilter(OfCorpora):
    """Removes pairs with a low cosine, by a model that was trained before (`ems score`)."""

    model: SourceName
    """A model folder, or one that `ems export` wrote, of another experiment."""
    threshold: number(ge=-1, le=1) = 0.7
    """Least cosine of the sides."""


MOST = 10**15  # beyond it a float no longer holds each whole number
Whole = whole(ge=-MOST, le=MOST)
Real = number(ge=-MOST, le=MOST)


class CommandFilter(OfCorpora):
    """Removes the pairs that a program does not pass on, as a JSON file of OpusCleaner says."""

    filter: SourceName
    """The JSON file of a bilingual filter."""
    parameters: dict[str, by_type(str, bool, Whole, Real)] = Field({})
    """Values of its parameters, where they are not its defaults."""


class CleanSettings(Settings):
    """Filters of the pairs, each counted under its own name in the report. The papers have none.

    Pairs with an empty side or an evaluation sentence always go. 0 is no limit. A pair goes when
    either side is beyond a limit.
    """

    LATER: ClassVar = frozenset({"commands"})
    undecodable: Literal["error", "drop"] = "error"
    """What to do with a side that is not UTF-8; such a row of `files` always goes."""
    format_characters: Literal["keep", "drop"] = "keep"
    """Bidi controls, soft hyphens, zero-width spaces and the like in the text; joiners stay where
    the script (or an emoji) is written with them. Travels with the model."""
    max_bytes: Limit = 0
    """Most bytes of UTF-8 on one side."""
    identical: Literal["keep", "drop"] = "keep"
    """Pairs whose sides are the same."""
    min_characters: Limit = 0
    """Fewest characters on one side."""
    max_characters: Limit = 0
    """Most characters on one side."""
    min_words: Limit = 0
    """Fewest words, between spaces, on one side."""
    max_words: Limit = 0
    """Most words, between spaces, on one side."""
    max_ratio: number(ge=0, le=1000) = 0  # a sentence by a letter is below it
    """Most characters of the longer side per character of the shorter one."""
    duplicates: Literal["keep", "drop", "across"] = "keep"
    """Repetitions of a pair: `drop` those within a corpus; `across`: also pairs of corpora that
    stand before it in `corpora`. Memory: 12 bytes a pair up to 100M pairs; for more, and for
    `across`, 0.6 GB and a byte a pair."""
    language: LanguageFilter | None = None
    """Sides in another language."""
    similarity: SimilarityFilter | None = None
    """Sides of other meaning."""
    commands: list[CommandFilter] = Field([])
    """Filters of OpusCleaner, run after all others, in their order."""


class DecontaminateSettings(Settings):
    """Which evaluation sentences no pair may contain."""

    LATER: ClassVar = frozenset({"validation"})
    key: Literal["folded", "plain"] = "folded"
    """How sentences are compared: without case and punctuation, or as is."""
    scope: Literal["any", "pair"] = "any"
    """Matches evaluation sentences of any language, or only of the pair's own."""
    against: listing(str) = Field(["tatoeba"])
    """The evaluation sets, each of which must stand under `evalsets`."""
    validation: bool = False
    """No training pair may contain a sentence of `validation` either."""


class VocabularySettings(Settings):
    """A subword vocabulary (SentencePiece)."""

    LATER: ClassVar = frozenset({"type", "characters"})
    size: whole(ge=100, le=65535)  # 16 bits in shards
    """The number of pieces."""
    sample_lines: whole(ge=100, le=1_000_000_000) = 2_000_000  # 200 GB of memory
    """Lines to train the vocabulary on."""
    temperature: number(ge=1, le=100) = 1  # at 100 a billion lines count as 1.2
    """Languages are sampled in proportion to their size to the power of 1 / temperature."""
    character_coverage: number(ge=0.98, le=1) = 0.9995  # SentencePiece takes no less
    """The share of the characters that have a piece."""
    byte_fallback: bool = False
    """Characters without a piece become bytes (256 pieces, inside the size) instead of <unk>."""
    type: Literal["bpe", "unigram"] = "bpe"
    """How pieces are found: byte-pair encoding or a unigram model."""
    characters: listing(str) = Field([])
    """Languages whose pieces are single characters, as Chinese in CCL 2019. They need no segmenter:
    a space is a piece, too."""


class VocabularyOverrides(VocabularySettings):
    """Another vocabulary: some of the languages, and what differs from `vocabulary`."""

    languages: SomeLanguages
    """Its languages, in their order."""
    size: whole(ge=100, le=65535) | None = None
    """The number of pieces."""


def check_clean(clean: CleanSettings) -> None:
    """Raise `EmsError` for limits that no sentence keeps; 0 is no limit."""
    limits = [("min_words", clean.min_words, "max_words")]
    for high in ("max_characters", "max_bytes"):
        limits.append(("min_characters", clean.min_characters, high))
        limits.append(("min_words", 2 * clean.min_words - 1, high))
    for low, least, high in limits:
        most = getattr(clean, high)
        if 0 < most < least:
            raise EmsError(
                f"clean.{low}: {getattr(clean, low)} with clean.{high}: {most} leaves no "
                "sentence; lower the one or raise the other"
            )
    if 0 < clean.max_ratio < 1:
        raise EmsError(
            f"clean.max_ratio: {clean.max_ratio}, but the longer side by the shorter is at "
            "least 1; 0 is no limit"
        )


def check_vocabulary(key: str, settings: VocabularySettings, languages: Sequence[str]) -> None:
    """Raise `EmsError` when the vocabulary at `key` has no piece left for text."""
    marked = [code for code in languages if code in settings.characters]
    if len(marked) == len(languages):
        raise EmsError(
            f"{key}.characters: {', '.join(marked)} are all of its languages, so no text is left "
            "to learn pieces from; leave one out"
        )
    taken = CONTROL + len(languages) + len(marked) + BYTES * settings.byte_fallback
    if settings.size <= taken:
        raise EmsError(
            f"{key}.size: {settings.size}, but {taken} pieces are no text: {CONTROL}, a token "
            "of each language, and the bytes of byte_fallback; raise it"
        )
