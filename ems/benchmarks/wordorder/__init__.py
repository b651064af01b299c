"""The case study of EMS v2 section V-H: two sentences with the same words in another order."""

from ems.config.plugins import Benchmark, Shown

BENCHMARK = Benchmark(
    title="word order",
    sets=(),
    pivot="en",
    tables={
        "wordorder": Shown(
            place=190,
            caption="Cosine of two sentences with the same words in another order.",
            paper="EMS v2, section V-H",
            report="The cosine of two sentences that have nearly the same words in another order "
            "and say different things (EMS v2, section V-H). The lower the better.",
        ),
    },
)
