"""PAWS-X: are two sentences with nearly the same words paraphrases?"""

from ems.config.plugins import Benchmark, same

BENCHMARK = Benchmark(
    title="PAWS-X",
    licence="may be used for any purpose; credit Google LLC",
    source="a directory or a URL with x-final.tar.gz",
    codes=same("de en es fr ja ko zh"),
    family="pair_classification",
    parallel=True,
)
