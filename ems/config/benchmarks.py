"""The settings of benchmarks: data, protocols and classifiers."""

from typing import Annotated, Literal

from pydantic import Field

from ems.base.records import Dropout, Json, whole
from ems.base.schema import Decay, Rate, Seed, Settings, ShortName, SourceName, by_type, listing


class EvalsetEntry(Settings):
    """An evaluation set: the data of a benchmark, or sentences only removed from training text."""

    version: ShortName
    """Version of the data."""
    languages: by_type(Literal["experiment", "all"], listing(str)) = "experiment"
    """Languages of the set: `experiment` for the experiment's languages that it has, `all` for
    every language that it has, or a list of codes."""
    without: list[str] = Field([])
    """Languages to leave out."""
    part: str = ""
    """Part of the corpus that serves as the benchmark, as `splits` divides it (ntrex only)."""
    path: SourceName | None = None
    """Folder with a copy of your own, read in place (default: the set is downloaded)."""
    dev: bool = False
    """Adds the dev part of flores200, which only the official archive has."""
    protocol: Json | None = None
    """Protocol of the benchmark, where it leaves a choice."""


ExampleCount = whole(ge=1, le=1_000_000)  # no classification benchmark has as many
Epochs = whole(ge=1, le=100_000)  # even of a thousand examples hours
# ten layers of 4,096 are 2.7 GB with Adam's moments
HiddenLayers = Annotated[list[whole(ge=1, le=4096)], Field(max_length=10)]
Patience = whole(ge=0, le=100_000)  # as epochs
Margin = Literal["ratio", "distance", "absolute"]


class SearchProtocol(Settings):
    """Search for the nearest sentences."""

    k: whole(ge=1, le=100) = 4  # LASER has 4, CSLS 10
    """Number of nearest neighbours of a sentence that the margin averages over."""
    margin: Margin = "ratio"
    """Score of two sentences: the ratio of their cosine to the mean cosine of their neighbours, the
    difference (`distance`), or the cosine alone (`absolute`)."""


class DrawnProtocol(SearchProtocol):
    """Queries and candidates sampled from a corpus, and the search among them."""

    queries: whole(ge=1, le=100_000) = 2000  # 4,096 candidates at a time: 8 GB of scores
    """Number of queries per language."""
    candidates: whole(ge=1, le=10_000_000) = 200_000  # embeddings of 1,024 are 40 GB
    """Number of sentences to search."""
    seed: Seed = 1234
    """Seed of the sample."""


class ProbeSettings(Settings):
    """A classifier on frozen embeddings. The defaults are those in LASER's tasks/mldoc."""

    # LASER has 5 seeds, and a hundred times as many give a tenth of the error
    seeds: whole(ge=1, le=500) = 5
    """Number of runs with different seeds; scores are their mean and standard deviation."""
    hidden: HiddenLayers = Field([10, 8])
    """Widths of the hidden layers; an empty list is logistic regression."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Activation of the hidden layers."""
    dropout: Dropout = 0.2
    """Dropout of the features and after each hidden layer."""
    learning_rate: Rate = 0.001
    """Learning rate of Adam."""
    weight_decay: listing(Decay, least=1) = Field([0])
    """L2 penalty. From several values, the one with the best accuracy on the validation part of the
    source language is chosen."""
    batch: ExampleCount = 12
    """Number of examples per step."""
    epochs: Epochs = 500
    """Maximum number of epochs; the one with the best validation accuracy is kept."""
    patience: Patience = 0
    """Number of epochs without improvement after which training stops; 0: no early stopping."""


class DocumentSettings(Settings):
    """How a benchmark embeds a document (EMS v2 V-E and V-F do not say)."""

    split: whole(ge=0, le=32768) = 120  # at most as model.max_tokens
    """Maximum length in tokens of a document that is embedded whole; a longer one is the mean of
    its sentences' embeddings. 0: off, a longer document is cut to max_tokens."""
