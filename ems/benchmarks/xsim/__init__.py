"""xsim: how often margin-based search misses the English translation, on FLORES-200."""

from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(title="xsim", sets=("flores200",), between="en", parallel=True)
