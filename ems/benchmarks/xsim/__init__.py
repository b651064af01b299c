"""xsim: how often margin-based search misses the English translation, on FLORES-200."""

from ems.config.plugins import read_record

BENCHMARK = read_record(__file__)
