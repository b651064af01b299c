"""Europarl: finding the translations of 2,000 sentences among 200,000, scored per direction."""

from ems.config.benchmarks import DrawnProtocol, Margin


class Protocol(DrawnProtocol):
    """The protocol of ParaCrawl, with plain cosine (Lightweight 4.4)."""

    margin: Margin = "absolute"
    """The margin; absolute: plain cosine."""
