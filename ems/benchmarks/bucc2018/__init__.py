"""BUCC 2018: mining translations from two comparable corpora."""

from typing import Literal

from ems.base.records import whole
from ems.config.benchmarks import SearchProtocol


class Protocol(SearchProtocol):
    """Mining and scoring of pairs (EMS v2 V-C)."""

    threshold: Literal["oracle", "sample"] = "oracle"
    """How to choose the score threshold. oracle: the best F1 on the scored pairs, as in the paper's
    script; sample: the best F1 on the sample part."""
    missed: whole(ge=0, le=100_000) = 10  # the largest language has 15,000 gold pairs
    """Number of extracted pairs outside the gold standard to keep in the score file, best first."""
