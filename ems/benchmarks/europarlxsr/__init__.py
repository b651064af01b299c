"""Europarl: 2,000 sentences to find among 200,000, each direction by itself."""

from pydantic import Field

from ems.config.benchmarks import DrawnProtocol, Margin
from ems.config.plugins import Benchmark, Shown, same


class Protocol(DrawnProtocol):
    """As that of ParaCrawl, by plain cosine (Lightweight 4.4)."""

    margin: Margin = Field("absolute", description="The margin; absolute: plain cosine.")


BENCHMARK = Benchmark(
    title="Europarl",
    task="XSR",
    licence="no known restrictions; see OPUS",
    codes=same("de es fr it"),
    corpus="Europarl",
    drawn=True,
    family="retrieval",
    hours=24,
    protocol=Protocol,
    tables={
        "europarlxsr": Shown(
            place=110,
            caption="Europarl: P@1 among many candidates.",
            paper="Lightweight, Tables 4 and 10",
            report="Retrieval on Europarl by cosine (the Lightweight paper, section 4.4, Table "
            "4): P@1 in percent, each direction by itself. Bold marks the best of our systems.",
        ),
    },
)
