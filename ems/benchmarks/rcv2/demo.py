"""The demo's RCV2 is the news of its MLDoc: both lie in one folder."""

from ems.benchmarks.mldoc.demo import demo_files

__all__ = ["PLACE", "demo_files"]
PLACE = 13
