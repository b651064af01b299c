"""SIB-200: the topic of a sentence, with training in English or another language."""

from ems.base.schema import OwnCode
from ems.config.benchmarks import ProbeSettings
from ems.config.plugins import Benchmark


class Probe(ProbeSettings):
    """The classifier of SIB-200."""

    both_ways: bool | None = None
    """Also trains on each other language and tests on English, as MLDoc does (default: trains on
    English only, and tests on English as well)."""
    source: OwnCode | None = None
    """The training language, instead of English."""


BENCHMARK = Benchmark(
    title="SIB-200",
    licence="text CC BY-SA 4.0, topics Apache-2.0",
    source="a directory or a URL with deu_Latn/train.tsv",
    published="https://raw.githubusercontent.com/dadelani/sib-200/593cea88519930f776c1a4a1980b6a35b39dca57/data/annotated",
    codes="flores200",
    by_language=True,
    parallel=True,
    family="classification",
    probe=Probe,
)
