"""WMT24++: finding the translation among 960 segments of news, social media, speech and novels."""

from ems.config.plugins import read_record

BENCHMARK = read_record(__file__)
