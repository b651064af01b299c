"""RCV2: the topic of a news item from its headline alone, in the Reuters corpora of MLDoc."""

from pydantic import Field

from ems.base.records import Dropout
from ems.base.schema import Decay, listing
from ems.config.benchmarks import Epochs, ExampleCount, HiddenLayers, ProbeSettings


class Probe(ProbeSettings):
    """The classifier of the monolingual paper's RCV2."""

    hidden: HiddenLayers = Field([128])
    dropout: Dropout = 0
    weight_decay: listing(Decay, least=1) = Field([0, 0.00001, 0.0001, 0.001, 0.01])
    """L2 weight decay, tuned on the validation part of the source language (the monolingual paper,
    4.3, which does not give the values)."""
    batch: ExampleCount = 100
    epochs: Epochs = 100
    train: ExampleCount = 1000
    """Number of titles drawn for training."""
    valid: ExampleCount = 1000
    """Number of titles drawn for validation."""
    test: ExampleCount = 4000
    """Number of titles drawn for the test."""
