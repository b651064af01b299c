"""XNLI: does a premise entail a hypothesis? The classifier is trained on English."""

from typing import Literal

from pydantic import Field

from ems.base.records import Dropout
from ems.config.benchmarks import Epochs, ExampleCount, HiddenLayers, Patience, ProbeSettings


class Probe(ProbeSettings):
    """The classifier of the monolingual paper's XNLI."""

    hidden: HiddenLayers = Field([512, 384])
    activation: Literal["tanh", "relu"] = "relu"
    """Activation function of the hidden layers."""
    dropout: Dropout = 0
    batch: ExampleCount = 256
    epochs: Epochs = 20
    patience: Patience = 3
