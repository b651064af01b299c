"""The sizes of an encoder as its module reads them, with their defaults.

`ems.config.model.EncoderSettings` says what each means and checks it in an experiment. A trained
model needs no more than this: using one must not load pydantic.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """The settings of an encoder; those that a model.json lacks have their default."""

    layers: int = 6
    width: int = 1024
    pooling: str = "mean"
    activation: str = "silu"
    positions: str = "learned"
    table: int = 0
    ngrams: int = 0
    heads: int = 16
    feed_forward: int = 4096
    dropout: float = 0.1
    attention_dropout: float = 0.1
    max_tokens: int = 120
    start: str = "ours"
    norm_eps: float = 0.00001

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
