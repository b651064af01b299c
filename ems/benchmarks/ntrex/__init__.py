"""NTREX-128: the translation of a sentence of news."""

from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(
    title="NTREX", licence="CC BY-SA 4.0", corpus="NTREX", family="retrieval", parallel=True
)
