"""Amazon counterfactual sentences: does a review say what was not the case?"""

from ems.config.papers import ZERO_SHOT
from ems.config.probes import ProbeSettings
from ems.config.record import Benchmark, Shown

BENCHMARK = Benchmark(
    title="Amazon counterfactual sentences",
    licence="CC BY-SA 4.0",
    source="a directory or a URL with EN_train.tsv",
    codes={"en": "EN", "de": "DE", "ja": "JP"},
    family="classification",
    probe=ProbeSettings,
    tables={
        "counterfactual": Shown(
            place=220,
            caption="Amazon counterfactual sentences, learnt in English: accuracy.",
            report=ZERO_SHOT,
        ),
    },
)
