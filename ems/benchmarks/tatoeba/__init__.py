"""Tatoeba: finding the translation among up to 1,000 sentences, in 112 languages."""

from ems.config.languages import load_tatoeba_codes
from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(
    title="Tatoeba",
    licence="CC BY 2.0 FR",
    source="'embedded', a directory, or a URL",
    published="https://raw.githubusercontent.com/facebookresearch/LASER/74bc6ae7ffb7/data/tatoeba/v1",
    codes="tatoeba_v1",
    unseen=load_tatoeba_codes(),
    by_language=True,
    family="retrieval",
    joins={"ablation": 1, "pairs": 1, "tradeoff": 1},
)
