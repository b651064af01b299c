"""MLDoc: the topic of a news item."""

from ems.config.benchmarks import ExampleCount, ProbeSettings


class Probe(ProbeSettings):
    """The classifier of MLDoc."""

    title: bool = False
    """Puts the headline or title before the text."""
    train: ExampleCount = 1000
    """Number of training examples; 1000 reads mldoc-indices/german.train.1000."""
