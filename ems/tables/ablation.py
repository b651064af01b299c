"""EMS v2 Table XIV: what each component is worth on several benchmarks, and what a step costs.

A mean is over what our systems have of the paper's languages or directions, n/m of them; beside it
the printed mean, which is over all of them, carries a dagger. Seconds are no score: with them it is
a table of costs, which differs from run to run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ems.base.errors import EmsError
from ems.config.papers import of_ems
from ems.config.plugins import joining, module
from ems.tables.engine import Column, Declaration, Printed, labels_of, part_of, write_sections
from ems.tables.losses import last_time
from ems.tables.printed import load_ablation
from ems.tables.scores import Families, Scores, read_scores
from ems.tables.several import in_one_row, steps_note, table_of

SECONDS = "Sec./1k Steps"
PRINTED_AS = "EMS"  # where `tables.printed` names it, the printed rows are shown
PAPER = Printed(
    of_ems("XIV"),
    load_ablation,
    "version v1 of all benchmarks",
    version="v1",
    every=True,
    whole=True,
    dagger="as printed, over all languages or directions of the paper",
)


@dataclass(frozen=True)
class Part:
    """The columns that one benchmark has in the table, `ABLATION` of its `table` module.

    `title` is the paper's name of the benchmark and `means` what the numbers are; `columns`: the
    paper's heading -> the labels that its mean is over, as `table` labels rows.
    """

    title: str
    means: str
    table: Declaration
    columns: Callable[[], Mapping[str, Sequence[str]]]


def write_ablation_table(
    scores: list[Path],
    out: Path,
    printed: Sequence[str],
    order: list[str],
    families: Families | None = None,
    times: Mapping[str, Path] | None = None,
    steps: Mapping[str, int] | None = None,
) -> None:
    """Write EMS v2 Table XIV of the systems `order` as .tex, .md and .csv beside `out`.

    `families` are systems that share a row, each with languages of its own; `times`: system -> its
    costs/train/*.times.jsonl, for a last column with the seconds of 1,000 steps; `steps`: system ->
    how many it was trained for, for a note, since a short training shows the form of the table and
    not what it is about. Raises `EmsError` for malformed files and scores of different data.
    """
    parts = {name: module(name, "table").ABLATION for name in joining("ablation")}
    read = {
        name: _read(part, [path for path in scores if path.stem == name], order, families)
        for name, part in parts.items()
        if any(path.stem == name for path in scores)
    }
    if not read:
        raise EmsError(
            f"the ablation table needs scores of {', '.join(parts)}, found none of them; name "
            "one under `benchmarks`"
        )
    names = [system.system for system in next(iter(read.values()))]
    systems = [
        in_one_row([system for of in read.values() for system in of if system.system == name])
        for name in names
    ]
    columns = [column for name in read for column in _columns(name, parts[name], systems)]
    if times is not None:
        given = {system.system: _seconds(system.system, times) for system in systems}
        columns.append(Column(SECONDS, [], SECONDS, given=given))
    versions = {name: rows[0].version for name, rows in read.items()}
    known = len({*versions.values()}) == 1 and PRINTED_AS in printed and PAPER.fits(systems[0])
    notes = [*_about(parts, versions, times), *steps_note(steps or {})]
    table = table_of(columns, notes, PAPER)
    write_sections(table, {"": systems}, out, [PRINTED_AS] if known else [], families)


def _read(
    part: Part, paths: list[Path], order: list[str], families: Families | None
) -> list[Scores]:
    """Read a benchmark; its name begins the labels, since another may have the same."""
    table = part.table
    return read_scores(
        paths,
        paths[0].stem,
        table.metric,
        label=lambda file, row: f"{file.benchmark} {table.label(file, row)}",
        order=order,
        families=families,
        seen=table.seen,
    )


def _columns(benchmark: str, part: Part, systems: Sequence[Scores]) -> list[Column]:
    """Return the paper's columns of a benchmark, with the members that our systems have."""
    scored = labels_of(systems)
    return [
        part_of(heading, [f"{benchmark} {label}" for label in labels], scored)
        for heading, labels in part.columns().items()
    ]


def _seconds(system: str, times: Mapping[str, Path]) -> float | None:
    """Return the seconds of 1,000 steps with validation; None for a system not trained."""
    if system not in times:
        return None
    step, seconds = last_time(times[system])
    return 1000 * seconds / step if step else None


def _about(
    parts: Mapping[str, Part], versions: Mapping[str, str], times: Mapping[str, Path] | None
) -> list[str]:
    data = ", ".join(f"{parts[name].title} {version}" for name, version in versions.items())
    means = ", ".join(f"{part.title} {part.means}" for part in parts.values())
    absent = [part.title for name, part in parts.items() if name not in versions]
    notes = [
        f"{data}. Means in percent: {means}; n/m are n of the paper's m. Bold: best of our systems."
    ]
    if absent:
        notes.append(f"Not among the benchmarks of the experiment: {', '.join(absent)}.")
    if times is not None:
        notes.append(
            f"{SECONDS}: wall seconds of training, validation included, on our machine; the "
            "paper's are of four V100."
        )
    return notes
