"""The settings `clean`, `decontaminate` and `vocabulary`."""

from collections.abc import Sequence
from typing import ClassVar, Literal, get_args

from pydantic import Field

from ems.base.errors import check, mistake
from ems.base.records import number, whole
from ems.base.schema import Name, Settings, SomeLanguages, SourceName, by_type, listing
from ems.config.plugins import repairs

CONTROL = 3  # pieces that are not text: <pad>, <unk>, <mask>; each language adds one
BYTES = 256  # pieces of `byte_fallback`
Limit = whole(ge=0, le=1_000_000)  # a million letters are a book


class OfCorpora(Settings):
    """A filter that can be limited to some of the corpora."""

    LATER: ClassVar = frozenset({"corpora"})
    corpora: listing(Name) = Field([])
    """Names of the corpora to filter (default: all)."""


class LanguageFilter(OfCorpora):
    """Removes pairs with a side in another language, as identified by the package py3langid.

    A side whose language the package does not know stays.
    """

    threshold: number(ge=0, le=1) = 0.5
    """Minimum probability of the other language for a side to be removed."""
    swapped: Literal["drop", "swap"] = "drop"
    """What to do with a pair whose sides are in each other's language."""


class SimilarityFilter(OfCorpora):
    """Removes pairs with a low cosine, measured with a model trained earlier (`ems score`)."""

    model: SourceName
    """Model folder, or folder that `ems export` wrote, from another experiment."""
    threshold: number(ge=-1, le=1) = 0.7
    """Minimum cosine of the two sides."""


MOST = 10**15  # beyond it a float no longer holds each whole number
Whole = whole(ge=-MOST, le=MOST)
Real = number(ge=-MOST, le=MOST)


class CommandFilter(OfCorpora):
    """Removes the pairs that a program does not pass on, given by a JSON file of OpusCleaner."""

    filter: SourceName
    """JSON file of a bilingual filter."""
    parameters: dict[str, by_type(str, bool, Whole, Real)] = Field({})
    """Values of the filter's parameters, where they differ from its defaults."""


# in the order of cost and of the report; `default` stands for all
PairFilter = Literal[
    "letters", "addresses", "numbers", "copies", "script", "length", "truncated", "near_duplicates"
]


class CleanSettings(Settings):
    """Filters of sentence pairs, each counted under its own name in the report. The papers use
    none.

    Pairs with an empty side or an evaluation sentence are always removed. A limit of 0 is off. A
    pair is removed if either side exceeds a limit.
    """

    LATER: ClassVar = frozenset({"commands", "filters", "repairs"})
    undecodable: Literal["error", "drop"] = "error"
    """What to do with a side that is not UTF-8. In `files`, such a row is always dropped."""
    repairs: by_type(Literal["none", "default"], listing(str)) = "none"
    """Repairs of damaged text, by name: mojibake, entities, look-alike letters and others
    (files of ems/text/repairs or extensions/repairs). `default` is all of them."""
    format_characters: Literal["keep", "drop"] = "keep"
    """What to do with invisible characters: bidi controls, soft hyphens, zero-width spaces and the
    like. Joiners stay where the script (or an emoji) needs them. The model keeps this setting."""
    max_bytes: Limit = 0
    """Maximum length of a side in bytes of UTF-8."""
    identical: Literal["keep", "drop"] = "keep"
    """What to do with pairs whose sides are the same."""
    min_characters: Limit = 0
    """Minimum length of a side in characters."""
    max_characters: Limit = 0
    """Maximum length of a side in characters."""
    min_words: Limit = 0
    """Minimum length of a side in words, separated by spaces."""
    max_words: Limit = 0
    """Maximum length of a side in words, separated by spaces."""
    max_ratio: number(ge=0, le=1000) = 0  # a sentence by a letter is below it
    """Maximum ratio of the lengths of the two sides, the longer by the shorter, in characters."""
    duplicates: Literal["keep", "drop", "across"] = "keep"
    """What to do with repeated pairs. `drop`: removes them within a corpus; `across`: also removes
    pairs of corpora earlier in `corpora`. Memory: 12 bytes per pair up to 100M pairs; above that,
    and for `across`, 0.6 GB and a byte per pair."""
    filters: by_type(Literal["none", "default"], listing(PairFilter)) = "none"
    """Filters of pairs that need no setting, by name; `default`: all of them. Each removes what
    docs/cleaning.md says, and together they keep 99.9 % of right pairs."""
    language: LanguageFilter | None = None
    """Filter for sides in another language."""
    similarity: SimilarityFilter | None = None
    """Filter for sides with different meanings."""
    commands: list[CommandFilter] = Field([])
    """Filters of OpusCleaner, run in this order after all others."""

    @property
    def pair_filters(self) -> tuple[str, ...]:
        words = {"none": (), "default": get_args(PairFilter)}
        return words[self.filters] if isinstance(self.filters, str) else tuple(self.filters)


class DecontaminateSettings(Settings):
    """Evaluation sentences that no sentence pair may contain."""

    LATER: ClassVar = frozenset({"validation"})
    key: Literal["primary", "folded", "plain"] = "primary"
    """How sentences are compared: `plain`, exactly; `folded`, without case and punctuation; or
    `primary`, also without accents, entities and variants of letters and digits."""
    scope: Literal["any", "pair"] = "any"
    """Evaluation sentences to compare with: in any language, or in the languages of the pair."""
    against: listing(str) = Field(["tatoeba"])
    """Evaluation sets to compare with, each with an entry under `evalsets`."""
    validation: bool = False
    """Also removes training pairs that contain a sentence of `validation`."""


class VocabularySettings(Settings):
    """A subword vocabulary (SentencePiece)."""

    LATER: ClassVar = frozenset({"type", "characters"})
    size: whole(ge=100, le=65535)  # 16 bits in shards
    """Number of pieces."""
    sample_lines: whole(ge=100, le=1_000_000_000) = 2_000_000  # 200 GB of memory
    """Number of lines to train the vocabulary on."""
    temperature: number(ge=1, le=100) = 1  # at 100 a billion lines count as 1.2
    """Sampling temperature: languages are sampled in proportion to size ** (1 / temperature)."""
    character_coverage: number(ge=0.98, le=1) = 0.9995  # SentencePiece takes no less
    """Share of the characters that get a piece."""
    byte_fallback: bool = False
    """Splits characters without a piece into bytes (256 of the pieces) instead of <unk>. Without
    it, a model cannot tell unknown digits and letters apart."""
    type: Literal["bpe", "unigram"] = "bpe"
    """Algorithm: byte-pair encoding or a unigram model."""
    characters: listing(str) = Field([])
    """Languages whose pieces are single characters, like Chinese in CCL 2019. They need no
    segmenter: a space is a piece, too."""


class VocabularyOverrides(VocabularySettings):
    """A vocabulary for some of the languages, as overrides of `vocabulary`."""

    languages: SomeLanguages
    """Languages of the vocabulary, in this order."""
    size: whole(ge=100, le=65535) | None = None
    """Number of pieces."""


def check_clean(clean: CleanSettings) -> None:
    """Raise `EmsError` for an unknown repair, or if no sentence can pass the limits."""
    if clean.repairs not in ("none", "default"):
        repairs().chosen(clean.repairs)
    limits = [("min_words", clean.min_words, "max_words")]
    for high in ("max_characters", "max_bytes"):
        limits.append(("min_characters", clean.min_characters, high))
        limits.append(("min_words", 2 * clean.min_words - 1, high))
    for low, least, high in limits:
        most = getattr(clean, high)
        if 0 < most < least:
            value = getattr(clean, low)
            raise mistake("no sentence left", low=low, value=value, high=high, most=most)
    if 0 < clean.max_ratio < 1:
        raise mistake("ratio below 1", ratio=clean.max_ratio)


def check_vocabulary(key: str, settings: VocabularySettings, languages: Sequence[str]) -> None:
    """Raise `EmsError` if the vocabulary at `key` has no piece left for text."""
    marked = [code for code in languages if code in settings.characters]
    taken = CONTROL + len(languages) + len(marked) + BYTES * settings.byte_fallback
    mistakes = {
        "only characters": len(marked) == len(languages),
        "no piece left": settings.size <= taken,
    }
    words = {"marked": marked, "size": settings.size, "taken": taken, "control": CONTROL}
    check(mistakes, key=key, **words)
