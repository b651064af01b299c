"""Pairs of your own text: finding the translation among all of them, in both directions."""

from ems.config.plugins import read_record

BENCHMARK = read_record(__file__)
