"""CLS (Amazon reviews, version 1): is a review positive? Three domains."""

from ems.config.benchmarks import ProbeSettings
from ems.config.plugins import Benchmark, same


class Probe(ProbeSettings):
    """The classifier of CLS."""

    title: bool = True
    """Puts the summary before the text."""


BENCHMARK = Benchmark(
    title="Amazon reviews, version 1 (CLS)",
    status="closed",
    licence="Amazon reviews, for research",
    obtain="ask for cls-acl10-unprocessed.tar.gz at https://zenodo.org/record/3251672",
    source="a directory or a URL with cls-acl10-unprocessed.tar.gz",
    codes=same("de en fr") | {"ja": "jp"},
    family="classification",
    probe=Probe,
)
