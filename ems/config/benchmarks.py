"""The settings of benchmarks: of their data, protocols and classifiers."""

from typing import Annotated, Literal

from pydantic import Field

from ems.base.schema import (
    Decay,
    Dropout,
    Json,
    Rate,
    Seed,
    Settings,
    ShortName,
    SourceName,
    by_type,
    listing,
    whole,
)


class EvalsetEntry(Settings):
    """A benchmark's data, or a set that only decontamination looks at."""

    version: ShortName
    """The version of the data."""
    languages: by_type(Literal["experiment", "all"], listing(str)) = "experiment"
    """The languages of the experiment that the benchmark has, all that it has, or a list."""
    without: list[str] = Field([])
    """Languages that are left out."""
    part: str = ""
    """ntrex: the part that is the benchmark, as `splits` divides it."""
    path: SourceName | None = None
    """The folder of a copy of your own, which is used in place."""
    dev: bool = False
    """flores200: adds the dev part, which only the official archive has."""
    protocol: Json | None = None
    """How the set is scored, where a benchmark leaves a choice."""


ExampleCount = whole(ge=1, le=1_000_000)  # no classification benchmark has as many
Epochs = whole(ge=1, le=100_000)  # even of a thousand examples hours
# ten layers of 4,096 are 2.7 GB with Adam's moments
HiddenLayers = Annotated[list[whole(ge=1, le=4096)], Field(max_length=10)]
Patience = whole(ge=0, le=100_000)  # as epochs
Margin = Literal["ratio", "distance", "absolute"]


class SearchProtocol(Settings):
    """How the nearest sentences are found."""

    k: whole(ge=1, le=100) = 4  # LASER has 4, CSLS 10
    """The neighbours of a sentence."""
    margin: Margin = "ratio"
    """The margin of the score; absolute: plain cosine."""


class DrawnProtocol(SearchProtocol):
    """How queries and candidates are drawn of a corpus, and how they are searched."""

    queries: whole(ge=1, le=100_000) = 2000  # 4,096 candidates at a time: 8 GB of scores
    """The queries of each language."""
    candidates: whole(ge=1, le=10_000_000) = 200_000  # embeddings of 1,024 are 40 GB
    """The sentences that are searched."""
    seed: Seed = 1234
    """The seed of the draw."""


class ProbeSettings(Settings):
    """A classifier on frozen embeddings; the defaults are LASER's tasks/mldoc."""

    # LASER has 5 seeds, and a hundred times as many give a tenth of the error
    seeds: whole(ge=1, le=500) = 5
    """The runs whose mean and standard deviation are reported."""
    hidden: HiddenLayers = Field([10, 8])
    """The widths of the hidden layers; none is logistic regression."""
    activation: Literal["tanh", "relu"] = "tanh"
    """The activation."""
    dropout: Dropout = 0.2
    """Dropout of the features and of each hidden layer."""
    learning_rate: Rate = 0.001
    """The learning rate of Adam."""
    weight_decay: listing(Decay, least=1) = Field([0])
    """L2; of several the one with the best accuracy on the source's validation part."""
    batch: ExampleCount = 12
    """Examples of a step."""
    epochs: Epochs = 500
    """The most epochs; the best one on validation is taken."""
    patience: Patience = 0
    """Stops after so many epochs without a better one; 0: never."""


class DocumentSettings(Settings):
    """How a benchmark embeds a document (EMS v2 V-E and V-F do not say)."""

    split: whole(ge=0, le=32768) = 120  # at most as model.max_tokens
    """A document of more tokens is the mean of its sentences' embeddings; 0: off, it is cut to
    max_tokens."""
