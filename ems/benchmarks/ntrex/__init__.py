"""NTREX-128: finding the translation of a news sentence."""

from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(
    title="NTREX", licence="CC BY-SA 4.0", corpus="NTREX", family="retrieval", parallel=True
)
