"""MARC (Amazon reviews, version 2): is a review positive?"""

from ems.base.records import whole
from ems.config.benchmarks import ProbeSettings


class Probe(ProbeSettings):
    """The classifier of MARC."""

    title: bool = True
    """Puts the title before the text."""
    train: whole(ge=2, le=1_000_000) = 2000  # MARC has 200,000 per language
    """Number of training reviews, drawn at random, half of each class."""
