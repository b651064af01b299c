"""EMS v2 Table XIV: what each component is worth, on Tatoeba, FLORES-200 and MLDoc, and what a
step costs.

Notable choices:
- rows are the systems that are trained; printed rows are the paper's ten, whatever ours are;
- columns of a benchmark that the experiment does not have are left out, and named in a note;
- a mean is over what our systems have of the paper's languages or directions, n/m of them; beside
  it the printed mean, which is over all of them, carries a dagger;
- seconds are no score: with them it is a table of costs, which differs from run to run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

from ems.errors import EmsError
from ems.tables.accuracies import read_accuracies
from ems.tables.flores import direction, read_flores
from ems.tables.losses import read_times
from ems.tables.papers import PRINTED_IN
from ems.tables.printed import load_ablation, load_flores_groups, load_groups, load_models
from ems.tables.rows import Row, absent_notes, make_table, mean
from ems.tables.scores import Families, Scores, in_order, joined, only_seen, read_scores
from ems.tables.table import Block
from ems.tables.write import write_table

READERS = {
    "tatoeba": lambda paths: only_seen(read_scores(paths, "tatoeba")),
    "flores200": read_flores,
    "mldoc": lambda paths: read_accuracies(paths, "mldoc").systems,
}
TITLES = {"tatoeba": "Tatoeba", "flores200": "Flores", "mldoc": "MLDoc"}
PAPER_VERSION = "v1"  # of all three, as far as the experiment says
SECONDS = "Sec./1k Steps"
PRINTED_AS = "EMS"  # where `tables.printed` names it, the printed rows are shown
MLDOC = ("de", "es", "fr", "it", "ja", "ru", "zh")
FOOTNOTE = "as printed, over all languages or directions of the paper"

Read = dict[str, dict[str, Scores]]  # benchmark -> system -> its scores


@dataclass(frozen=True)
class Column:
    """A mean over members of a benchmark: Tatoeba's codes, or directions; `printed` is the paper's
    heading.
    """

    benchmark: str
    printed: str
    members: Sequence[str]


def write_ablation_table(
    scores: list[Path],
    out: Path,
    printed: list[str],
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
    ours = [_our_row(name, read, columns, times) for name in next(iter(read.values()))]
    same = all(_version(of) == PAPER_VERSION for of in read.values())
    beside = load_ablation() if same and PRINTED_AS in printed else {}
    rows = [*ours, *(_printed_row(name, of, columns) for name, of in beside.items())]
    headings = [*columns, *([SECONDS] if times is not None else [])]
    every = [system for of in read.values() for system in of.values()]
    about = [*_about(read, times is not None), *_steps_note(steps or {})]
    notes = [*about, *absent_notes(every), *_printed_note(bool(beside))]
    table = make_table(rows, len(ours), [Block(headings, spread=True)], notes)
    table = replace(table, footnote=FOOTNOTE if table.dagger else "")
    bold = {(row, name) for row, name in table.bold if name != SECONDS}
    write_table(replace(table, bold=bold), out)


def _read(paths: list[Path], order: list[str], families: Families | None) -> Read:
    found: Read = {}
    for benchmark, read in READERS.items():
        own = [path for path in paths if path.stem == benchmark]
        if own:
            systems = joined(in_order(read(own), order), families)
            found[benchmark] = {system.system: system for system in systems}
    if not found:
        raise EmsError(
            f"the ablation table needs scores of {', '.join(READERS)}, found none of them; name "
            "one under `benchmarks`"
        )
    return found


def _version(systems: Mapping[str, Scores]) -> str:
    return next(iter(systems.values())).version


def _columns(read: Read) -> dict[str, Column]:
    """Heading -> what it averages: the paper's heading, or n/m where we have a part of it."""
    columns = {}
    for column in _paper_columns():
        if column.benchmark in read:
            have = {name for system in read[column.benchmark].values() for name in system.values}
            members = [name for name in column.members if name in have]
            columns[_heading(column, len(members))] = replace(column, members=members)
    return columns


def _heading(column: Column, found: int) -> str:
    every = len(column.members)
    if found == every:
        return column.printed
    name = column.printed.partition(" (")[0].removesuffix(" Avg.")
    return f"{name} {found}/{every}"


def _paper_columns() -> list[Column]:
    """The seven of the paper, in its order."""
    seen = load_models()["EMS"].seen
    groups = {group.heading: group.languages for group in load_groups("XIV")}
    flores = {
        heading: [direction(*pair) for pair in permutations(languages, 2)]
        for heading, languages in load_flores_groups().items()
    }
    return [
        Column("tatoeba", f"Tatoeba Avg. ({len(seen)})", list(seen)),
        *(Column("tatoeba", f"Tatoeba {name}", codes) for name, codes in groups.items()),
        *(Column("flores200", f"Flores {name}", directions) for name, directions in flores.items()),
        Column("mldoc", "MLDoc en->X Avg.", [direction("en", code) for code in MLDOC]),
        Column("mldoc", "MLDoc X->en Avg.", [direction(code, "en") for code in MLDOC]),
    ]


def _our_row(
    system: str, read: Read, columns: dict[str, Column], times: Mapping[str, Path] | None
) -> Row:
    values = {
        heading: mean(read[column.benchmark][system].values, column.members)
        for heading, column in columns.items()
    }
    return Row(system, values | ({SECONDS: _seconds(system, times)} if times is not None else {}))


def _seconds(system: str, times: Mapping[str, Path]) -> float | None:
    """Seconds of 1,000 steps, validation included; None for a system that was not trained."""
    if system not in times:
        return None
    step, seconds = max(read_times(times[system]).items())
    return 1000 * seconds / step if step else None


def _printed_row(name: str, values: Mapping[str, float], columns: dict[str, Column]) -> Row:
    shown = {heading: values.get(column.printed) for heading, column in columns.items()}
    partial = {heading for heading, column in columns.items() if heading != column.printed}
    return Row(f"{name} (printed)", {**shown, SECONDS: values.get(SECONDS)}, partial)


def _about(read: Read, timed: bool) -> list[str]:
    data = ", ".join(f"{TITLES[name]} {_version(of)}" for name, of in read.items())
    absent = [TITLES[name] for name in READERS if name not in read]
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


def _printed_note(shown: bool) -> list[str]:
    note = f"Rows marked printed: {PRINTED_IN['ablation']}; they do not compete for bold."
    return [note] if shown else []
