"""Amazon counterfactual sentences: does a review describe something that did not happen?"""

from ems.config.benchmarks import ProbeSettings
from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(
    title="Amazon counterfactual sentences",
    licence="CC BY-SA 4.0",
    source="a directory or a URL with EN_train.tsv",
    codes={"en": "EN", "de": "DE", "ja": "JP"},
    family="classification",
    probe=ProbeSettings,
)
