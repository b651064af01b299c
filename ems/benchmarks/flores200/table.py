"""EMS v2 Table VII: P@1 between languages other than English, and over all scored directions.

The paper prints no single directions. If we score only part of its group, the number it prints for
the whole group carries a dagger.
"""

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from pathlib import Path

from ems.bench.scores import ENGLISH, Score, ScoreFile
from ems.config.plugins import benchmark
from ems.tables.declarations import noted_table
from ems.tables.engine import Column, one_block, part_of
from ems.tables.printed import load_flores_groups, load_table
from ems.tables.scores import Families, Label, Scores, read_scores

_models = partial(load_table, "ems-v2-table07-flores", "pair")


def _direction(file: ScoreFile, row: Score) -> str:
    return f"{file.languages[row.source]}-{file.languages[row.target]}"


def _columns(systems: Sequence[Scores]) -> list[Column]:
    scored = dict.fromkeys(name for system in systems for name in system.values)
    groups = load_flores_groups()
    columns = []
    for heading in next(iter(_models().values())):
        languages = groups.get(heading) or heading.split("-")
        ways = ["-".join(pair) for pair in permutations(languages, 2)]
        columns.append(part_of(heading, ways, scored))
    english = [name for name in scored if ENGLISH in name.split("-")]
    others = [name for name in scored if name not in english]
    own = {"With English": english, "Other": others, "All": list(scored)}
    return [*columns, *(Column(f"{name} ({len(of):,})", of) for name, of in own.items() if of)]


FLORES = noted_table(
    "flores200", "P@1", _columns, _models, "flores", label=_direction, blocks=one_block
)
TABLES = {"flores": FLORES}


def plot_map(
    scores: list[Path],
    out: Path,
    families: Families | None = None,
    name: str = "flores200",
    label: Label = _direction,
) -> None:
    """Draw a map of P@1 (percent) per direction of the first system; `families` share a map."""
    from ems.tables.figures import plot_directions  # here: matplotlib is slow to import

    systems = read_scores(scores, name, "P@1", label, families=families)
    plot_directions(systems[0], benchmark(name), out)


FIGURES = {"flores": plot_map}
