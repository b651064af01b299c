"""The demo's RCV2: the same news as its MLDoc, in one folder."""

from ems.benchmarks.mldoc.demo import demo_files

__all__ = ["PLACE", "demo_files"]
PLACE = 13
