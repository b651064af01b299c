"""XNLI: does a premise entail a hypothesis? Learnt in English."""

from ems.benchmarks.record import Benchmark, Shown, same
from ems.papers import ZERO_SHOT

BENCHMARK = Benchmark(
    title="XNLI",
    licence="CC BY-NC 4.0",
    source="a directory or a URL with XNLI-1.0.zip",
    codes=same("ar bg de el en es fr hi ru sw th tr ur vi zh"),
    hours=10,
    parallel=True,
    tables={
        "xnli": Shown(
            place=160,
            caption="XNLI, learnt in English: accuracy, mean and standard deviation of the seeds.",
            paper="the monolingual paper, Table 1",
            report=ZERO_SHOT,
        ),
    },
)
