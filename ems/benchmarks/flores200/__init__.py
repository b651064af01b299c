"""FLORES-200: finding the translation among 1,012 sentences, between any two languages."""

from ems.config.benchmarks import SearchProtocol
from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(
    title="FLORES-200",
    licence="CC BY-SA 4.0",
    source="a directory or a URL with devtest/deu_Latn.devtest, or the URL of "
    "flores200_dataset.tar.gz",
    published="https://raw.githubusercontent.com/Helsinki-NLP/OPUS-MT-testsets/ac0f19c0be3cb4e0d9450fcb2d7a9847c4bdd180/datasets/facebook/flores/flores200_dataset",
    codes="flores200",
    by_language=True,
    dev="https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz",
    between="",
    parallel=True,
    joins={"ablation": 2},
    protocol=SearchProtocol,
)
