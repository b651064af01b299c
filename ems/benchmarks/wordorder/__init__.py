"""The case study of EMS v2 section V-H: two sentences with the same words in a different order."""

from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(title="word order", sets=(), pivot="en")
