"""P@1 per language and over all directions, by domain and by length. No paper scores WMT24++."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ems.bench.scores import ENGLISH, Score, ScoreFile
from ems.benchmarks.flores200.table import plot_map
from ems.config.languages import UNSEEN
from ems.config.plugins import benchmark
from ems.tables.declarations import noted_table
from ems.tables.engine import Column, average, headings, own_codes
from ems.tables.scores import Families, Scores, read_scores
from ems.tables.table import Block

LENGTH = " words"  # ends the measures of a length


def _direction(file: ScoreFile, row: Score) -> str:
    return row.direction


def _columns(systems: Sequence[Scores]) -> list[Column]:
    languages = {n: code for s in systems for n, code in s.file.languages.items() if n != ENGLISH}
    codes, unseen = own_codes(languages), {n for n, code in languages.items() if code == UNSEEN}
    pairs = {name: [f"{name}-{ENGLISH}", f"{ENGLISH}-{name}"] for name in sorted(languages)}
    every = list(dict.fromkeys(name for system in systems for name in system.values))
    seen = [name for name in every if not unseen & {*name.split("-")}]
    others = [each for name in sorted(unseen) for each in pairs[name]]
    apart = [Column("Unseen", others), Column(f"Trained directions ({len(seen):,})", seen)]
    return [
        *(Column(codes[name], members) for name, members in pairs.items()),
        average([each for name in pairs if name not in unseen for each in pairs[name]]),
        *(apart if unseen else ()),
        Column(f"All directions ({len(every):,})", every),
    ]


def _kinds(systems: Sequence[Scores]) -> list[Column]:
    names = dict.fromkeys(name for system in systems for name in system.measures)
    return [Column(name, [name], measure=name) for name in names]


def _blocks(columns: Sequence[Column]) -> list[Block]:
    lengths = [name for name in headings(columns) if name.endswith(LENGTH)]
    return [Block([name for name in headings(columns) if name not in lengths]), Block(lengths)]


def plot_lengths(scores: list[Path], out: Path, families: Families | None = None) -> None:
    """Draw P@1 (percent, with English, trained languages) by words: a line per system."""
    from ems.tables.figures import plot_lines

    systems = read_scores(scores, "wmt24pp", "P@1", _direction, families=families)
    columns = [each for each in _kinds(systems) if each.heading.endswith(LENGTH)]
    lines = {system.system: [each.value(system) for each in columns] for system in systems}
    labels = [name.removesuffix(LENGTH) for name in headings(columns)]
    title = f"{benchmark('wmt24pp').title} {systems[0].version}: P@1 (higher is better) by length"
    plot_lines(labels, lines, "words of the English segment", title, out)


TABLES = {
    "wmt24pp": noted_table("wmt24pp", "P@1", _columns, label=_direction),
    "wmt24pp_kinds": noted_table(
        "wmt24pp", "P@1", _kinds, table="wmt24pp_kinds", label=_direction, blocks=_blocks
    ),
}
FIGURES = {
    "wmt24pp": partial(plot_map, name="wmt24pp", label=_direction),
    "wmt24pp_length": plot_lengths,
}
