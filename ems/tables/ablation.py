"""EMS v2 Table XIV: what each component is worth, on Tatoeba, FLORES-200 and MLDoc, and what a
step costs.

A mean is over what our systems have of the paper's languages or directions, n/m of them; beside it
the printed mean, which is over all of them, carries a dagger. Seconds are no score: with them it is
a table of costs, which differs from run to run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from ems.errors import EmsError
from ems.scores import ScoreFile
from ems.tables.columns import direction, language_direction
from ems.tables.engine import Column, Printed, Row, absent_notes, make_table, printed_rows
from ems.tables.losses import read_times
from ems.tables.printed import load_ablation, load_flores_groups, load_groups, load_models
from ems.tables.scores import Families, Label, Scores, read_scores
from ems.tables.table import Block
from ems.tables.words import TABLES
from ems.tables.write import write_table


@dataclass(frozen=True)
class Part:
    """A benchmark of the table: its name there, how a row counts, and whether trained languages
    alone count.
    """

    title: str
    metric: str
    label: Label
    seen: bool | None = None


PARTS = {
    "tatoeba": Part("Tatoeba", "P@1", ScoreFile.label_of, seen=True),
    "flores200": Part("Flores", "P@1", language_direction),
    "mldoc": Part("MLDoc", "accuracy", lambda file, row: row.direction),
}
SECONDS = "Sec./1k Steps"
PRINTED_AS = "EMS"  # where `tables.printed` names it, the printed rows are shown
MLDOC = ("de", "es", "fr", "it", "ja", "ru", "zh")
PAPER = Printed(
    TABLES["ablation"].paper,
    load_ablation,
    "version v1 of all benchmarks",
    version="v1",
    every=True,
    whole=True,
    dagger="as printed, over all languages or directions of the paper",
)

Read = dict[str, dict[str, Scores]]  # benchmark -> system -> its scores


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

    `scores` are score files of tatoeba, flores200 and mldoc; `families` are systems that share a
    row, each with languages of its own; `times`: system -> its costs/train/*.times.jsonl, for a
    last column with the seconds of 1,000 steps; `steps`: system -> how many it was trained for, for
    a note, since a short training shows the form of the table and not what it is about.
    Raises `EmsError` for malformed files and scores of different data.
    """
    read = _read(scores, order, families)
    columns = _columns(read)
    seconds = [Column(SECONDS, [], SECONDS)] if times is not None else []
    rows = []
    for name in next(iter(read.values())):
        values = {c.heading: c.value(read[of][name]) for c, of in columns.items()}
        cost = {SECONDS: _seconds(name, times)} if times is not None else {}
        rows.append(Row(name, {**values, **cost}))
    systems = [system for of in read.values() for system in of.values()]
    every = [*columns, *seconds]
    known = PAPER.fits(systems[0]) and len({system.version for system in systems}) == 1
    asked = [PRINTED_AS] if known and PRINTED_AS in printed else []
    beside, notes = printed_rows(PAPER, asked, systems[0], every)
    table = make_table(
        [*rows, *beside],
        blocks=[Block([column.heading for column in every], spread=True)],
        notes=[
            *_about(read, times is not None),
            *_steps_note(steps or {}),
            *absent_notes(systems),
            *notes,
        ],
        competing=[list(range(len(rows)))],
        only={column.heading for column in columns},
        rules={len(rows)},
        footnote=PAPER.dagger,
    )
    write_table(table, out)


def _read(paths: list[Path], order: list[str], families: Families | None) -> Read:
    read: Read = {}
    for benchmark, part in PARTS.items():
        own = [path for path in paths if path.stem == benchmark]
        if own:
            how = {"metric": part.metric, "label": part.label, "seen": part.seen}
            systems = read_scores(own, benchmark, order=order, families=families, **how)
            read[benchmark] = {system.system: system for system in systems}
    if not read:
        raise EmsError(
            f"the ablation table needs scores of {', '.join(PARTS)}, found none of them; name "
            "one under `benchmarks`"
        )
    return read


def _columns(read: Read) -> dict[Column, str]:
    """The paper's seven columns, as far as we have their benchmarks -> the benchmark."""
    columns = {}
    for benchmark, printed, paper in _paper_columns():
        if benchmark in read:
            have = {name for system in read[benchmark].values() for name in system.values}
            members = tuple(name for name in paper if name in have)
            part = len(members) < len(paper)
            name = printed.partition(" (")[0].removesuffix(" Avg.")
            heading = f"{name} {len(members)}/{len(paper)}" if part else printed
            columns[Column(heading, members, printed, part)] = benchmark
    return columns


def _paper_columns() -> list[tuple[str, str, Sequence[str]]]:
    """Benchmark, heading and members of each of the paper's columns."""
    seen = load_models()["EMS"].seen
    groups = {group.heading: group.languages for group in load_groups("XIV")}
    flores = {
        heading: [direction(*pair) for pair in permutations(languages, 2)]
        for heading, languages in load_flores_groups().items()
    }
    return [
        ("tatoeba", f"Tatoeba Avg. ({len(seen)})", list(seen)),
        *(("tatoeba", f"Tatoeba {name}", codes) for name, codes in groups.items()),
        *(("flores200", f"Flores {name}", directions) for name, directions in flores.items()),
        ("mldoc", "MLDoc en->X Avg.", [direction("en", code) for code in MLDOC]),
        ("mldoc", "MLDoc X->en Avg.", [direction(code, "en") for code in MLDOC]),
    ]


def _seconds(system: str, times: Mapping[str, Path]) -> float | None:
    """Seconds of 1,000 steps, validation included; None for a system that was not trained."""
    if system not in times:
        return None
    step, seconds = max(read_times(times[system]).items())
    return 1000 * seconds / step if step else None


def _about(read: Read, timed: bool) -> list[str]:
    versions = {name: next(iter(systems.values())).version for name, systems in read.items()}
    data = ", ".join(f"{PARTS[name].title} {version}" for name, version in versions.items())
    absent = [part.title for name, part in PARTS.items() if name not in read]
    notes = [
        f"{data}. Means in percent: Tatoeba P@1 of both directions, Flores P@1 over the directions "
        "between the languages of a group, MLDoc zero-shot accuracy; n/m are n of the paper's m. "
        "Bold: best of our systems."
    ]
    if absent:
        notes.append(f"Not among the benchmarks of the experiment: {', '.join(absent)}.")
    if timed:
        notes.append(
            f"{SECONDS}: wall seconds of training, validation included, on our machine; the "
            "paper's are of four V100."
        )
    return notes


def _steps_note(steps: Mapping[str, int]) -> list[str]:
    """How long the systems were trained: what most have, then those that differ."""
    if not steps:
        return []
    usual = max(steps.values(), key=list(steps.values()).count)
    others = [f"{name} {count:,}" for name, count in steps.items() if count != usual]
    return [f"Steps of training: {', '.join([f'{usual:,}', *others])}."]
