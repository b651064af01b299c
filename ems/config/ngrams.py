"""The settings `ngrams` of a system of kind char-ngram or fused."""

from typing import Annotated

from pydantic import Field

from ems.base.errors import EmsError
from ems.base.schema import Settings, number

Length = Annotated[int, Field(ge=1, le=16)]  # in letters; few words are longer


class NgramSettings(Settings):
    """The n-grams of letters of a system of kind char-ngram or fused."""

    least: Length = Field(2, description="The letters of the shortest n-gram.")
    most: Length = Field(
        4, description="The letters of the longest one; whole words count besides."
    )
    romanise: bool = Field(
        True, description="Writes every script in Latin letters first, by the package anyascii."
    )
    idf: bool = Field(
        True,
        description="Weighs an n-gram by its inverse document frequency, which is counted in the "
        "training text of the system's vocabulary: in as many lines as `vocabulary.sample_lines`.",
    )
    buckets: int = Field(
        8192,
        ge=16,
        le=65536,
        description="The numbers of a vector, to which n-grams are hashed, with signs. Vectors are "
        "dense: FLORES-200 in 62 languages takes 2 GB with 8,192.",
    )
    weight: number(ge=0, le=10_000) | None = Field(
        None,
        description="Only of kind fused: the length of the n-grams' part of a vector beside an "
        "embedding of length 1, for a sentence of 100 n-grams (default: the best on the "
        "`validation` pairs).",
    )
    power: number(ge=0, le=2) | None = Field(
        None,
        description="Only of kind fused: `weight` is multiplied by (n / 100) to this power for a "
        "sentence of n n-grams (default: the best on the `validation` pairs).",
    )

    @property
    def searched(self) -> bool:
        """True if `weight` or `power` is to be found on validation pairs."""
        return self.weight is None or self.power is None


def check_ngrams(key: str, settings: NgramSettings, fused: bool) -> None:
    """Raise `EmsError` for settings that contradict one another, or are of fused systems alone."""
    if settings.least > settings.most:
        raise EmsError(f"{key}.least: {settings.least} is more than {key}.most: {settings.most}")
    for name in ("weight", "power") if not fused else ():
        if getattr(settings, name) is not None:
            raise EmsError(f"{key}.{name}: only of kind: fused; take it out")
