"""BOUQuET: finding the translation of sentences and paragraphs first written in 8 languages."""

from ems.config.plugins import read_record

BENCHMARK = read_record(__file__)
