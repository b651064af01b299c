"""Europarl: finding the translations of 2,000 sentences among 200,000, scored per direction."""

from ems.config.benchmarks import DrawnProtocol, Margin
from ems.config.plugins import Benchmark, same


class Protocol(DrawnProtocol):
    """The protocol of ParaCrawl, with plain cosine (Lightweight 4.4)."""

    margin: Margin = "absolute"
    """The margin; absolute: plain cosine."""


BENCHMARK = Benchmark(
    title="Europarl",
    task="XSR",
    licence="no known restrictions; see OPUS",
    codes=same("de es fr it"),
    corpus="Europarl",
    drawn=True,
    family="retrieval",
    hours=24,
    protocol=Protocol,
)
