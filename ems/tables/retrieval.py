"""Tables of retrieval among many candidates. Which sentences were drawn is the paper's own in any
case, so a note beside its rows says so.
"""

from collections.abc import Callable, Sequence

from ems.bench.scores import ScoreFile
from ems.config.plugins import benchmark as record_of
from ems.tables.engine import BEST, Column, Declaration, Models, Printed
from ems.tables.scores import Label, Scores

MARGINS = {
    "ratio": "the ratio margin with {k} neighbours",
    "distance": "the distance margin with {k} neighbours",
    "absolute": "cosine",
}


def retrieval_table(
    benchmark: str,
    version: str,
    margin: str,
    models: Callable[[], Models],
    columns: Callable[[Sequence[Scores]], list[Column]],
    what: str,
    label: Label = ScoreFile.label_of,
) -> Declaration:
    """Return the table of a benchmark whose paper drew 2,000 queries of 200,000 candidates."""
    title, where = record_of(benchmark).title, record_of(benchmark).tables[benchmark].paper

    def about(systems: Sequence[Scores]) -> list[str]:
        protocol = systems[0].file.setting
        measure = MARGINS[protocol("margin", {"enum": list(MARGINS)})].format(k=protocol("k"))
        return [
            f"{title} {systems[0].version}: {what}, of {protocol('queries'):,} queries among "
            f"{protocol('candidates'):,} candidates, by {measure}. {BEST}"
        ]

    return Declaration(
        benchmarks={benchmark: ""},
        metric="P@1",
        label=label,
        columns=columns,
        about=about,
        printed=Printed(
            f"{where}, of other sentences drawn from {title}",
            models,
            f"{title} {version}, 2,000 queries among 200,000, by {MARGINS[margin].format(k=4)}",
            version=version,
            protocol={"queries": 2000, "candidates": 200_000, "margin": margin},
        ),
    )
