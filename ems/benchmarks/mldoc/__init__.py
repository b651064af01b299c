"""MLDoc: the topic of a news item."""

from pathlib import Path

from ems.base.files import read_table
from ems.config.benchmarks import ExampleCount, ProbeSettings
from ems.config.plugins import read_record

_ROWS = read_table(Path(__file__).with_name("languages.tsv"))
LANGUAGES = {row["language"]: row["folder"] for row in _ROWS}  # the Reuters corpora's own names


class Probe(ProbeSettings):
    """The classifier of MLDoc."""

    title: bool = False
    """Puts the headline or title before the text."""
    train: ExampleCount = 1000
    """Number of training examples; 1000 reads mldoc-indices/german.train.1000."""


BENCHMARK = read_record(__file__, codes=LANGUAGES, probe=Probe)
