"""ParaCrawl v5: finding the translations of 2,000 sentences among 200,000."""

from ems.config.benchmarks import DrawnProtocol
from ems.config.plugins import Benchmark, same

BENCHMARK = Benchmark(
    title="ParaCrawl",
    licence="CC0",
    codes=same("bg cs da de el es et fi fr hr hu it lt lv nl pl pt ro sk sl sv"),
    corpus="ParaCrawl",
    drawn=True,
    family="retrieval",
    hours=24,
    protocol=DrawnProtocol,
)
