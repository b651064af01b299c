"""FLORES-200: finding the translation among 1,012 sentences, between any two languages."""

from ems.config.benchmarks import SearchProtocol
from ems.config.plugins import read_record

BENCHMARK = read_record(__file__, protocol=SearchProtocol)
