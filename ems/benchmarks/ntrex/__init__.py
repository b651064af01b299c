"""NTREX-128: finding the translation of a news sentence."""

from ems.config.plugins import read_record

BENCHMARK = read_record(__file__)
