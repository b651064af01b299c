"""The demo's RCV2, which are the news of MLDoc: both lie in one folder."""

from ems.benchmarks.mldoc.demo import made

__all__ = ["PLACE", "made"]
PLACE = 13
