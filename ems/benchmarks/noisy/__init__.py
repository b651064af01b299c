"""Noisy FLORES-200: finding the English line with a damaged line of another language."""

from ems.config.plugins import read_record

BENCHMARK = read_record(__file__)
