"""NTREX-128: finding the translation of a news sentence."""

from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(
    title="NTREX",
    licence="CC BY-SA 4.0",
    corpus="NTREX",
    source="the URL of the repository at a commit, if `opus` is a URL too",
    published="https://raw.githubusercontent.com/MicrosoftTranslator/NTREX/8561f6a622db9edad1217683e5c83daefd8bb2bf",
    family="retrieval",
    parallel=True,
)
