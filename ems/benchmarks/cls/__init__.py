"""CLS (Amazon reviews, version 1): is a review positive? Three domains."""

from ems.config.benchmarks import ProbeSettings
from ems.config.plugins import read_record


class Probe(ProbeSettings):
    """The classifier of CLS."""

    title: bool = True
    """Puts the summary before the text."""


BENCHMARK = read_record(__file__, probe=Probe)
