"""CLS (Amazon reviews, version 1): is a review positive? Three domains."""

from ems.config.benchmarks import ProbeSettings


class Probe(ProbeSettings):
    """The classifier of CLS."""

    title: bool = True
    """Puts the summary before the text."""
