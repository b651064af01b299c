"""MLDoc: the topic of a news item."""

from pathlib import Path

from ems.base.files import read_table
from ems.config.benchmarks import ExampleCount, ProbeSettings
from ems.config.plugins import Benchmark

_ROWS = read_table(Path(__file__).with_name("languages.tsv"))
LANGUAGES = {row["language"]: row["folder"] for row in _ROWS}  # the Reuters corpora's own names


class Probe(ProbeSettings):
    """The classifier of MLDoc."""

    title: bool = False
    """Puts the headline or title before the text."""
    train: ExampleCount = 1000
    """Number of training examples; 1000 reads mldoc-indices/german.train.1000."""


BENCHMARK = Benchmark(
    title="MLDoc",
    status="closed",
    licence="indices CC BY-NC 4.0; text Reuters, by agreement with NIST",
    obtain="ask NIST for RCV1 and RCV2 (https://trec.nist.gov/data/reuters/reuters.html) and put "
    "mldoc-indices/ of https://github.com/facebookresearch/MLDoc into the same folder as rcv1/ and "
    "RCV2_Multilingual_Corpus/",
    codes=LANGUAGES,
    demo="reuters",
    family="classification",
    joins={"ablation": 3},
    probe=Probe,
)
