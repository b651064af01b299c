"""MARC (Amazon reviews, version 2): is a review positive?"""

from ems.base.records import whole
from ems.config.benchmarks import ProbeSettings
from ems.config.plugins import Benchmark, same


class Probe(ProbeSettings):
    """The classifier of MARC."""

    title: bool = True
    """Puts the title before the text."""
    train: whole(ge=2, le=1_000_000) = 2000  # MARC has 200,000 per language
    """Number of training reviews, drawn at random, half of each class."""


BENCHMARK = Benchmark(
    title="Amazon reviews, version 2 (MARC)",
    status="withdrawn",
    licence="Amazon, academic research only, not to be passed on",
    obtain="Amazon withdrew it; use a copy obtained while it was offered "
    "(json/{train,dev,test}/dataset_XX_*.json)",
    source="a directory or a URL with test/dataset_de_test.json",
    codes=same("de en es fr ja zh"),
    family="classification",
    probe=Probe,
)
