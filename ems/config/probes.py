"""The settings that benchmarks have in common: their searches, their classifiers, documents."""

from typing import Annotated, Literal

from pydantic import Field

from ems.base.schema import Decay, Dropout, Rate, Seed, Settings, listing

Neighbours = Annotated[int, Field(ge=1, le=100)]  # LASER has 4, CSLS 10
Queries = Annotated[int, Field(ge=1, le=100_000)]  # with 4,096 candidates at a time 8 GB of scores
Candidates = Annotated[int, Field(ge=1, le=10_000_000)]  # embeddings of 1,024 are 40 GB
Examples = Annotated[int, Field(ge=1, le=1_000_000)]  # no classification benchmark has as many
Epochs = Annotated[int, Field(ge=1, le=100_000)]  # even of a thousand examples hours
Hidden = Annotated[int, Field(ge=1, le=4096)]  # ten such layers are 2.7 GB with Adam's moments
HiddenLayers = Annotated[list[Hidden], Field(max_length=10)]
Patience = Annotated[int, Field(ge=0, le=100_000)]  # as epochs
Margin = Literal["ratio", "distance", "absolute"]
HIDDEN = "The widths of the hidden layers; none is logistic regression."
DECAYS = "L2; of several the one with the best accuracy on the source's validation part."
DROPOUT = "Dropout of the features and of each hidden layer."
BATCH = "Examples of a step."
EPOCHS = "The most epochs; the best one on validation is taken."
PATIENCE = "Stops after so many epochs without a better one; 0: never."


class SearchProtocol(Settings):
    """How the nearest sentences are found."""

    k: Neighbours = Field(4, description="The neighbours of a sentence.")
    margin: Margin = Field("ratio", description="The margin of the score; absolute: plain cosine.")


class DrawnProtocol(SearchProtocol):
    """How queries and candidates are drawn of a corpus, and how they are searched."""

    queries: Queries = Field(2000, description="The queries of each language.")
    candidates: Candidates = Field(200_000, description="The sentences that are searched.")
    seed: Seed = Field(1234, description="The seed of the draw.")


class ProbeSettings(Settings):
    """A classifier on frozen embeddings; the defaults are LASER's tasks/mldoc."""

    seeds: int = Field(  # LASER has 5, and a hundred times as many give a tenth of the error
        5, ge=1, le=500, description="The runs whose mean and standard deviation are reported."
    )
    hidden: HiddenLayers = Field([10, 8], description=HIDDEN)
    activation: Literal["tanh", "relu"] = Field("tanh", description="The activation.")
    dropout: Dropout = Field(0.2, description=DROPOUT)
    learning_rate: Rate = Field(0.001, description="The learning rate of Adam.")
    weight_decay: listing(Decay, least=1) = Field([0], description=DECAYS)
    batch: Examples = Field(12, description=BATCH)
    epochs: Epochs = Field(500, description=EPOCHS)
    patience: Patience = Field(0, description=PATIENCE)


class DocumentSettings(Settings):
    """How a benchmark embeds a document (EMS v2 V-E and V-F do not say)."""

    split: int = Field(  # at most as model.max_tokens
        120,
        ge=0,
        le=32768,
        description="A document of more tokens is the mean of its sentences' embeddings; 0: off, "
        "it is cut to max_tokens.",
    )
