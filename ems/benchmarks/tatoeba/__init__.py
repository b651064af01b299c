"""Tatoeba: finding the translation among up to 1,000 sentences, in 112 languages."""

from ems.config.languages import load_tatoeba_codes
from ems.config.plugins import read_record

BENCHMARK = read_record(__file__, unseen=load_tatoeba_codes())
