"""The demo's RCV2 is the news of its MLDoc: both lie in one folder."""

from ems.benchmarks.mldoc.demo import made

__all__ = ["PLACE", "made"]
PLACE = 13
