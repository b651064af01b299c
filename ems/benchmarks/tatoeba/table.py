"""EMS v2 Tables IV and V (trained languages, and groups of them) and VI (unseen languages)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ems.config.plugins import benchmark
from ems.tables import engine
from ems.tables.declarations import noted_table
from ems.tables.engine import Column, Declaration, labels_of, part_of
from ems.tables.printed import AVERAGE, TATOEBA, load_groups, load_tatoeba, tatoeba_codes
from ems.tables.scores import Families, Scores, read_scores
from ems.tables.table import Block, balanced_blocks


def _columns(systems: Sequence[Scores], groups: bool) -> list[Column]:
    codes = {label: code for each in systems for label, code in each.languages.items()}
    own = engine.own_codes(codes)
    languages = sorted(labels_of(systems), key=own.__getitem__)
    whole = next((name for name in TATOEBA if set(tatoeba_codes(name)) == set(languages)), "")
    columns = [Column(own[label], [label], label) for label in languages]
    columns.append(Column(AVERAGE, languages, whole, part=not whole))
    for heading, codes in load_groups().items() if groups else ():
        columns.append(part_of(heading, codes, languages))
    return columns


def _blocks(columns: list[Column]) -> list[Block]:
    names = engine.headings(columns)
    first = names.index(AVERAGE) + 1
    wide = [Block(names[first:], spread=True)] if names[first:] else []
    return [*balanced_blocks(names[:first]), *wide]


def _table(name: str, seen: bool) -> Declaration:
    columns = partial(_columns, groups=seen)
    return noted_table("tatoeba", "P@1", columns, load_tatoeba, name, blocks=_blocks, seen=seen)


TABLES = {"tatoeba": _table("tatoeba", True), "tatoeba_unseen": _table("tatoeba_unseen", False)}


def plot_tatoeba(scores: list[Path], out: Path, families: Families | None = None) -> None:
    """Draw P@1 (percent) of each trained language and system; `families` count as one system.
    Raises `EmsError` for score files that may not share a table.
    """
    from ems.tables.figures import plot_strip  # here: matplotlib is slow to import

    systems = read_scores(scores, "tatoeba", "P@1", families=families, seen=True)
    values = {s.system: {s.languages[k]: v for k, v in s.values.items()} for s in systems}
    title = f"{benchmark('tatoeba').title} {systems[0].version}: P@1, mean of both directions"
    plot_strip(values, title, out)


FIGURES = {"tatoeba": plot_tatoeba}
