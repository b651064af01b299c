"""PAWS-X: are two sentences with nearly the same words paraphrases?"""

from ems.config.plugins import read_record

BENCHMARK = read_record(__file__)
