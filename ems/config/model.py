"""The settings `model`, `objectives.head`, `ngrams` and `export`: the parts of an encoder."""

from typing import ClassVar, Literal

from pydantic import Field

from ems.base.records import Dropout, whole
from ems.base.schema import Settings, listing
from ems.config.sizes import EncoderSizes, NgramSizes, WidthOrNone


class EncoderSettings(Settings, EncoderSizes):
    """Sizes of the encoder (EMS v2 section III-A)."""

    LATER: ClassVar = frozenset({"pooling", "activation", "positions", "table", "ngrams"})


class HeadSettings(Settings):
    """The generative head that xtr, ugt, smlm and mlm share (EMS v2 Eq. 2-5)."""

    language_width: WidthOrNone = 128
    """Width of the language embedding; 0: no language embedding."""
    output: Literal["own", "shared"] = "own"
    """Output matrix W_emb: its own weights, or the encoder's token embeddings (`shared`)."""
    bias: bool = False
    """Adds a bias to W_emb."""
    layer_norm: bool = False
    """Adds layer norms after the language embedding and after swish, as in the authors' code."""
    dropout: Dropout = 0
    """Dropout of the language embedding."""


class NgramSettings(Settings, NgramSizes):
    """Character n-grams of a system of kind char-ngram or fused."""


class ExportSettings(Settings):
    """Content of the folders that `ems export` writes."""

    systems: listing(str) = Field([])
    """Systems that the target `exports` (and so `dvc repro`) exports; each other system is a target
    of its own."""
    onnx: bool = False
    """Adds onnx/model.onnx."""
    int8: bool = False
    """Adds onnx/model_qint8.onnx."""
    dimensions: whole(ge=0, le=65536) = 0
    """Number of leading dimensions of each embedding to keep, one of
    `objectives.matryoshka.dimensions`; 0: all."""
    without_segmenters: bool = False
    """Exports a system even if tokenizer.json cannot express its segmenters, and states the
    measured loss of P@1 on its model card."""
