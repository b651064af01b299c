"""NTREX-128: the translation of a sentence of news."""

from ems.config.plugins import Benchmark, Shown

BENCHMARK = Benchmark(
    title="NTREX",
    licence="CC BY-SA 4.0",
    corpus="NTREX",
    family="retrieval",
    parallel=True,
    tables={
        "ntrex": Shown(
            place=200,
            caption="NTREX, test part: P@1, mean of both directions.",
            report="Similarity search on NTREX, news translated from English: P@1 in percent, the "
            "mean of both directions, as on Tatoeba. Only those documents of NTREX are searched "
            "that neither training nor validation holds. The paper has no such numbers. Bold "
            "marks the best of our systems.",
        ),
    },
)
