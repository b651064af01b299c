"""The settings `model`, `objectives.head`, `ngrams` and `export`: what an encoder is made of."""

from typing import ClassVar, Literal

from pydantic import Field

from ems.base.errors import EmsError
from ems.base.schema import Dropout, Settings, listing, number, whole

WIDEST = 32768  # the widest published Transformer has 20,480 (Megatron-Turing NLG)
WidthOrNone = whole(ge=0, le=WIDEST)


class EncoderSettings(Settings):
    """The sizes of the encoder (EMS v2 section III-A)."""

    LATER: ClassVar = frozenset({"pooling", "activation", "positions", "table", "ngrams"})
    layers: whole(ge=0, le=1000) = 6  # DeepNet, the deepest, has 1,000 (Wang et al. 2022)
    """The number of Transformer layers."""
    width: whole(ge=2, le=WIDEST) = 1024  # a layer norm of one number is 0
    """The width of the embeddings and of each layer."""
    pooling: Literal["mean", "mean-max"] = "mean"
    """The sentence embedding. mean: of the states of its tokens; mean-max: their mean and their
    maximum, twice as wide (CCL 2019)."""
    activation: Literal["silu", "gelu"] = "silu"
    """The activation between the feed-forward layers: swish as in the authors' code, or gelu, which
    every server of models computes."""
    positions: Literal["learned", "none"] = "learned"
    """learned: an embedding of each place in the sentence; none: the order of words is not seen.
    With 0 layers the encoder is then a table of one vector a piece."""
    table: WidthOrNone = 0
    """The width of a table of one vector a piece. Their mean, and a linear map of that of the
    layers, is the sentence embedding; with `layers: 0` it is the table's alone, which trains at
    many times the speed. 0: no table."""
    ngrams: whole(ge=0, le=1 << 24) = 0  # fastText has two million
    """The rows of a second table, of hashed n-grams of the letters of words, which are romanised:
    names and cognates are seen, in any script. 0: none."""
    heads: whole(ge=1, le=1024) = 16  # 32 wide each at the largest width
    """Attention heads; they divide `width`."""
    feed_forward: whole(ge=1, le=131072) = 4096  # 4 times the largest width
    """The width of the feed-forward layers."""
    dropout: Dropout = 0.1
    """Dropout of the input and of each residual."""
    attention_dropout: Dropout = 0.1
    """Dropout of the attention weights."""
    max_tokens: whole(ge=1, le=32768) = 120  # the longest of published text encoders
    """Longer sentences are cut to so many tokens."""
    start: Literal["ours", "pytorch"] = "ours"
    """Start values. ours: embeddings from N(0, 0.02), linear layers by Xavier; pytorch: PyTorch's
    defaults, with all layers alike."""
    norm_eps: number(ge=1e-30, le=1) = 0.00001  # of float32: neither 0 nor more than any variance
    """The epsilon of every layer norm."""

    @property
    def pooled_width(self) -> int:
        """The width of a sentence embedding."""
        if self.table:
            return self.table
        return 2 * self.width if self.pooling == "mean-max" else self.width

    @property
    def attends(self) -> bool:
        """Whether there are layers, or only their input; else there is nothing but a table."""
        return self.layers > 0 or not self.table

    def check(self, key: str) -> None:
        """Raise `EmsError` for sizes of the system at `key` that contradict one another."""
        if self.width % self.heads:
            raise EmsError(
                f"{key}: model.width {self.width} is no multiple of model.heads {self.heads}"
            )
        if self.ngrams and not self.table:
            raise EmsError(
                f"{key}: model.table: this key is missing; the n-grams of model.ngrams are added "
                "to a table of vectors: give its width, like 512"
            )
        if self.table and self.pooling != "mean":
            raise EmsError(
                f"{key}: model.pooling: a table's vectors are added to means; say mean, or leave "
                "model.table out"
            )


class HeadSettings(Settings):
    """The head that xtr, ugt, smlm and mlm share (EMS v2 Eq. 2-5)."""

    language_width: WidthOrNone = 128
    """The width of the language embedding; 0: no language embedding."""
    output: Literal["own", "shared"] = "own"
    """The output matrix W_emb; shared: the encoder's token embeddings."""
    bias: bool = False
    """Adds a bias to W_emb."""
    layer_norm: bool = False
    """Adds layer norms after the language embedding and after swish, as the authors' code does."""
    dropout: Dropout = 0
    """Dropout of the language embedding."""


Length = whole(ge=1, le=16)  # in letters; few words are longer


class NgramSettings(Settings):
    """The n-grams of letters of a system of kind char-ngram or fused."""

    least: Length = 2
    """The letters of the shortest n-gram."""
    most: Length = 4
    """The letters of the longest one; whole words count besides."""
    romanise: bool = True
    """Writes every script in Latin letters first, by the package anyascii."""
    idf: bool = True
    """Weighs an n-gram by its inverse document frequency, which is counted in the training text of
    the system's vocabulary: in as many lines as `vocabulary.sample_lines`."""
    buckets: whole(ge=16, le=65536) = 8192
    """The numbers of a vector, to which n-grams are hashed, with signs. Vectors are dense:
    FLORES-200 in 62 languages takes 2 GB with 8,192."""
    weight: number(ge=0, le=10_000) | None = None
    """Only of kind fused: the length of the n-grams' part of a vector beside an embedding of length
    1, for a sentence of 100 n-grams (default: the best on the `validation` pairs)."""
    power: number(ge=0, le=2) | None = None
    """Only of kind fused: `weight` is multiplied by (n / 100) to this power for a sentence of n
    n-grams (default: the best on the `validation` pairs)."""

    @property
    def searched(self) -> bool:
        """True if `weight` or `power` is to be found on validation pairs."""
        return self.weight is None or self.power is None


class ExportSettings(Settings):
    """What the exported folder of each system has."""

    systems: listing(str) = Field([])
    """The systems that the target `exports` (and so `dvc repro`) exports; any other one is a target
    of its own."""
    onnx: bool = False
    """Adds onnx/model.onnx."""
    int8: bool = False
    """Adds onnx/model_qint8.onnx."""
    dimensions: whole(ge=0, le=65536) = 0
    """Keeps the first numbers of each embedding, one of `objectives.matryoshka.dimensions`; 0:
    all."""
    without_segmenters: bool = False
    """Exports a system whose segmenters no tokenizer.json can say, with the measured loss of P@1 on
    its card."""
