"""A table of the systems of several experiments, made of each one's score files.

    ems table tatoeba --experiments small62,mine --out both.tex

A system whose name two experiments have is named after its experiment: "mine: ems". The data must
be the same: an experiment of fewer languages reads fewer files, so those that both read count.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ems.base.errors import EmsError
from ems.config.experiment import Experiment
from ems.config.plugins import module
from ems.config.record import Shown
from ems.tables.engine import Declaration, write_systems
from ems.tables.registry import tables


def write_together(table: str, experiments: Sequence[Experiment], out: Path) -> list[Path]:
    """Write a table as .tex, .md and .csv beside `out`; the score files that it is made of.

    Raises `EmsError` for a table that is of one experiment, an experiment that does not have it,
    and scores that cannot share a table.
    """
    declaration, shown = _declared(table)
    files = {of.name: [Path(p) for p in tables()[table].sources(of)] for of in experiments}
    for name, paths in files.items():
        if not paths:
            raise EmsError(
                f"configs/{name}.yaml: expected an experiment that has the table {table}, found "
                "none of its scores; add its benchmark, or leave the experiment out"
            )
    names = {
        experiment.name: _row_names(experiment, experiments, shown) for experiment in experiments
    }
    write_systems(
        declaration,
        [path for paths in files.values() for path in paths],
        out,
        list(dict.fromkeys(name for of in experiments for name in of.tables.printed)),
        [names[of.name][system] for of in experiments for system in shown.of(of)],
        {
            names[of.name][family]: [names[of.name][member] for member in members]
            for of in experiments
            for family, members in of.families.items()
            if set(members) <= names[of.name].keys()
        },
        {path: names[of][path.parent.name] for of, paths in files.items() for path in paths},
    )
    return [path for paths in files.values() for path in paths]


def _declared(table: str) -> tuple[Declaration, Shown]:
    """Return the declaration of a table of systems."""
    declared = {}
    for name, output in tables().items():
        made = module(output.benchmark, "table").TABLES[name] if output.benchmark else None
        if isinstance(made, Declaration):
            declared[name] = made
    if table not in declared:
        raise EmsError(
            f"--experiments: expected a table of systems, found {table!r}; these may have several "
            f"experiments: {', '.join(declared)}"
        )
    return declared[table], tables()[table].shown


def _row_names(
    experiment: Experiment, experiments: Sequence[Experiment], shown: Shown
) -> dict[str, str]:
    """Return the row of each system and family of an experiment, which no other one has."""
    counts = Counter(name for of in experiments for name in {*shown.of(of), *of.families})
    own = dict.fromkeys([*shown.of(experiment), *experiment.families])
    return {name: f"{experiment.name}: {name}" if counts[name] > 1 else name for name in own}
