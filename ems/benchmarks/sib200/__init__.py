"""SIB-200: the topic of a sentence, with training in English or another language."""

from ems.base.schema import OwnCode
from ems.config.benchmarks import ProbeSettings


class Probe(ProbeSettings):
    """The classifier of SIB-200."""

    both_ways: bool | None = None
    """Also trains on each other language and tests on English, as MLDoc does (default: trains on
    English only, and tests on English as well)."""
    source: OwnCode | None = None
    """The training language, instead of English."""
