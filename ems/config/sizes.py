"""The sizes of an encoder and of its n-grams, as model.json and the settings share them.

They need no package: a model is used without pydantic.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ems.base.errors import check
from ems.base.records import Dropout, number, whole

WIDEST = 32768  # the widest published Transformer has 20,480 (Megatron-Turing NLG)
WidthOrNone = whole(ge=0, le=WIDEST)


@dataclass(frozen=True)
class EncoderSizes:
    """Sizes of an encoder; `ems.config.model.EncoderSettings` is the same as settings."""

    ONLY_KNOWN_KEYS: ClassVar = True
    layers: whole(ge=0, le=1000) = 6  # DeepNet, the deepest, has 1,000 (Wang et al. 2022)
    """Number of Transformer layers."""
    width: whole(ge=2, le=WIDEST) = 1024  # a layer norm of one number is 0
    """Width of the token embeddings and of each layer."""
    pooling: Literal["mean", "mean-max"] = "mean"
    """Sentence embedding: mean of the token states; with `mean-max` and maximum, twice as wide."""
    activation: Literal["silu", "gelu"] = "silu"
    """Activation of the feed-forward layers: `silu` (swish), as in the authors' code, or `gelu`,
    which every inference server supports."""
    positions: Literal["learned", "none"] = "learned"
    """`learned`: an embedding per position in the sentence; `none`: word order is ignored. With 0
    layers and `none`, the encoder is a table with one vector per piece."""
    table: WidthOrNone = 0
    """Width of an extra table with one vector per piece; 0: no table. The sentence embedding is the
    mean of these vectors plus a linear map of the layers' sentence embedding. With `layers: 0` it
    is the mean alone, which trains many times faster."""
    ngrams: whole(ge=0, le=1 << 24) = 0  # fastText has two million
    """Number of rows of a second table, for hashed character n-grams of romanised words, so that
    names and cognates match in any script; 0: no such table."""
    heads: whole(ge=1, le=1024) = 16  # 32 wide each at the largest width
    """Number of attention heads; a divisor of `width`."""
    feed_forward: whole(ge=1, le=131072) = 4096  # 4 times the largest width
    """Width of the feed-forward layers."""
    dropout: Dropout = 0.1
    """Dropout of the input and of each residual."""
    attention_dropout: Dropout = 0.1
    """Dropout of the attention weights."""
    max_tokens: whole(ge=1, le=32768) = 120  # the longest of published text encoders
    """Maximum length of a sentence in tokens; longer ones are cut."""
    start: Literal["ours", "pytorch"] = "ours"
    """Initial weights. `ours`: embeddings from N(0, 0.02), linear layers by Xavier; `pytorch`:
    PyTorch's defaults, the same in all layers."""
    norm_eps: number(ge=1e-30, le=1) = 0.00001  # of float32: neither 0 nor more than any variance
    """Epsilon of every layer norm."""

    @property
    def pooled_width(self) -> int:
        if self.table:
            return self.table
        return 2 * self.width if self.pooling == "mean-max" else self.width

    @property
    def attends(self) -> bool:
        """True if there are layers, or their input alone; false if the encoder is only a table."""
        return self.layers > 0 or not self.table

    def check(self, key: str) -> None:
        """Raise `EmsError` if sizes of the system at `key` contradict each other."""
        mistakes = {
            "width and heads": self.width % self.heads,
            "n-grams without a table": self.ngrams and not self.table,
            "pooling of a table": self.table and self.pooling != "mean",
        }
        check(mistakes, key=key, model=self)


Length = whole(ge=1, le=16)  # in letters; few words are longer


@dataclass(frozen=True)
class NgramSizes:
    """Character n-grams; `ems.config.model.NgramSettings` is the same as settings."""

    ONLY_KNOWN_KEYS: ClassVar = True
    least: Length = 2
    """Length of the shortest n-gram, in letters."""
    most: Length = 4
    """Length of the longest n-gram, in letters; whole words count as well."""
    romanise: bool = True
    """Converts every script to Latin letters first, with the package anyascii."""
    idf: bool = True
    """Weights each n-gram by its inverse document frequency, counted in `vocabulary.sample_lines`
    lines of the training text of the system's vocabulary."""
    buckets: whole(ge=16, le=65536) = 8192
    """Width of a vector, to which n-grams are hashed with signs. Vectors are dense: FLORES-200 in
    62 languages takes 2 GB with 8,192."""
    weight: number(ge=0, le=10_000) | None = None
    """Length of the n-gram part of a vector, relative to an embedding of length 1, for a sentence
    of 100 n-grams. Only for `kind: fused` (default: the best on the `validation` pairs)."""
    power: number(ge=0, le=2) | None = None
    """Exponent of the sentence length: `weight` is multiplied by (n / 100) to this power for a
    sentence of n n-grams. Only for `kind: fused` (default: the best on the `validation` pairs)."""

    @property
    def searched(self) -> bool:
        """True if `weight` or `power` must be chosen on validation pairs."""
        return self.weight is None or self.power is None
