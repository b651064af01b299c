"""BUCC 2018: translations mined from two comparable corpora."""

from typing import Literal

from ems.base.schema import whole
from ems.config.benchmarks import SearchProtocol
from ems.config.plugins import Benchmark, same


class Protocol(SearchProtocol):
    """How pairs are mined and scored (EMS v2 V-C)."""

    threshold: Literal["oracle", "sample"] = "oracle"
    """The threshold of the score. oracle: the one with the best F1 on the pairs that are scored, as
    the paper's script; sample: with the best F1 on the sample part."""
    missed: whole(ge=0, le=100_000) = 10  # of the largest language 15,000 pairs are gold
    """The number of best pairs to keep that are not gold."""


BENCHMARK = Benchmark(
    title="BUCC 2018",
    licence="none stated; for research",
    source="a directory or a URL with bucc2018-de-en.training-gold.tar.bz2",
    codes=same("de fr ru zh"),
    family="mining",
    hours=24,
    protocol=Protocol,
)
