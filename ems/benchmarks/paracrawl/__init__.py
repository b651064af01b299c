"""ParaCrawl v5: 2,000 sentences to find among 200,000."""

from ems.config.benchmarks import DrawnProtocol
from ems.config.plugins import Benchmark, Shown, of_ems, same

BENCHMARK = Benchmark(
    title="ParaCrawl",
    licence="CC0",
    codes=same("bg cs da de el es et fi fr hr hu it lt lv nl pl pt ro sk sl sv"),
    corpus="ParaCrawl",
    drawn=True,
    family="retrieval",
    hours=24,
    protocol=DrawnProtocol,
    tables={
        "paracrawl": Shown(
            place=100,
            caption="ParaCrawl: P@1 among many candidates, mean of both directions.",
            paper=of_ems("X"),
            report="Retrieval on ParaCrawl by margin (EMS v2, section V-D, Table X): P@1 in "
            "percent, the mean of both directions; the note says how many queries and candidates "
            "there are. Bold marks the best of our systems.",
        ),
    },
)
