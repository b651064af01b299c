"""RCV2: the topic of a news item, by its headline alone."""

from ems.benchmarks.mldoc.languages import LANGUAGES
from ems.benchmarks.record import Benchmark, Shown
from ems.papers import ZERO_SHOT

BENCHMARK = Benchmark(
    title="RCV2 headlines",
    status="closed",
    licence="Reuters, by agreement with NIST",
    obtain=(
        "ask NIST for RCV1 and RCV2 (https://trec.nist.gov/data/reuters/reuters.html) and "
        "unpack them to rcv1/ and RCV2_Multilingual_Corpus/"
    ),
    codes=LANGUAGES,
    demo="reuters",
    family="classification",
    tables={
        "rcv2": Shown(
            place=170,
            caption=(
                "RCV2 headlines, zero-shot: accuracy, mean and standard deviation of the seeds."
            ),
            paper="the monolingual paper, Table 2",
            report=ZERO_SHOT,
        ),
    },
)
