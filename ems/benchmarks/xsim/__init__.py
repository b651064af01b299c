"""xsim: how often the English translation of a FLORES-200 sentence is not the one found."""

from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(title="xsim", sets=("flores200",), between="en", parallel=True)
