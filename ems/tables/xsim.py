"""The table of xsim and xsim++: error rates per language, and what misled (of xsim++).

Notable choices:
- a row per measure and system, languages as columns, as in the other tables of languages; below
  them the share of sentences that each kind of error takes, mean over languages: they add up to
  the average of xsim++;
- the fewer errors the better: bold is the lowest of a measure.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ems.damaged import Damaged
from ems.files import read_json
from ems.shapes import COUNT, PERCENT, SOME, TEXT, Shape, mapping, record
from ems.tables.printed import AVERAGE, in_table_one_order
from ems.tables.rows import Row, joined_notes, make_table, missing_notes, system_row
from ems.tables.scores import Families, Scores, in_order, joined, read_scores, scores_shape
from ems.tables.table import Block, Place, Table, balanced_blocks, best_places, make_frame
from ems.tables.write import write_table

MEASURES = {"xsim": "xsim", "xsimpp": "xsim++"}  # benchmark -> as its authors write it
Kinds = dict[str, dict[str, float]]  # language -> kind of error -> percent of the sentences


def read_errors(paths: Sequence[Path], benchmark: str) -> list[Scores]:
    """The score files of xsim or xsimpp: error rate in percent by language of the experiment.

    Raises `EmsError` for a malformed one, and when they cannot share a table.
    """
    return read_scores(paths, benchmark, read=partial(_read_one, benchmark=benchmark))


def _read_one(path: Path, benchmark: str) -> Scores:
    data = read_json(path, _shape(benchmark))
    each = {entry["language"]: entry for entry in data["directions"].values()}
    values = {name: float(entry["error"]) for name, entry in each.items()}
    for name, shares in _kinds(data).items() if benchmark == "xsimpp" else ():
        if abs(sum(shares.values()) - values[name]) > 1e-6:
            raise Damaged(path, f"kinds of errors of {name} that do not add up to its errors")
    return Scores(
        path=path,
        system=data["system"],
        version=f"{data['version']}, {_told(data['protocol'])}",
        data_sha256=data["data_sha256"],
        values=values,
        languages={name: name for name in values},
        sentences={name: entry["sentences"] for name, entry in each.items()},
    )


def _shape(benchmark: str) -> Shape:
    entry = {"language": TEXT, "sentences": SOME, "error": PERCENT}
    kinds = {"kinds": mapping(COUNT)} if benchmark == "xsimpp" else {}
    protocol = record({"margin": TEXT, "k": COUNT})
    return scores_shape(benchmark, "error rate", record(entry | kinds), protocol=protocol)


def _told(protocol: dict[str, Any]) -> str:
    return f"{protocol['margin']} margin, k = {protocol['k']}"


def write_xsim_table(
    scores: list[Path],
    out: Path,
    order: list[str] | None = None,
    families: Families | None = None,
) -> None:
    """Write the error rates of some systems as .tex, .md and .csv beside `out`.

    `scores` are their xsim.json and xsimpp.json; `order` names the systems that come first;
    `families` are systems that share a row. Raises `EmsError` as `read_errors` does.
    """
    found: dict[str, list[Scores]] = {}
    kinds: dict[str, Kinds] = {}
    measured = [name for name in MEASURES if any(path.stem == name for path in scores)]
    for benchmark in measured or ["xsim"]:
        paths = [path for path in scores if path.stem == benchmark]
        systems = in_order(read_errors(paths, benchmark), order or [])
        found[benchmark] = joined(systems, families)
        if benchmark == "xsimpp":
            there = [system for system in systems if not system.absent]
            shape = _shape(benchmark)
            kinds = {system.system: _kinds(read_json(system.path, shape)) for system in there}
    write_table(_table(found, _of_rows(kinds, families or {}), families), out)


def _kinds(data: dict[str, Any]) -> Kinds:
    """What a file of xsimpp tells of its errors."""
    return {
        entry["language"]: {
            kind.replace("_", " "): 100 * count / entry["sentences"]
            for kind, count in entry["kinds"].items()
        }
        for entry in data["directions"].values()
    }


def _of_rows(kinds: dict[str, Kinds], families: Families) -> dict[str, Kinds]:
    """The same by the name of the row, which may be a family's."""
    rows = dict(kinds)
    for name, members in families.items():
        parts = [kinds[member] for member in members if member in kinds]
        rows[name] = {language: found for part in parts for language, found in part.items()}
    return rows


def _table(
    found: dict[str, list[Scores]], kinds: dict[str, Kinds], families: Families | None
) -> Table:
    every = [system for systems in found.values() for system in systems]
    languages = in_table_one_order({code for system in every for code in system.values})
    names = sorted({kind for of in kinds.values() for each in of.values() for kind in each})
    rows, groups = [], []
    for benchmark, systems in found.items():
        groups.append(list(range(len(rows), len(rows) + len(systems))))
        for system in systems:
            shares = _shares(kinds.get(system.system, {}), names) if benchmark == "xsimpp" else {}
            row = system_row(system, languages)
            label = f"{MEASURES[benchmark]}: {system.system}"
            rows.append(Row(label, {**row.values, **dict.fromkeys(names), **shares}))
    blocks = balanced_blocks([*languages, AVERAGE])
    blocks += [Block(names, True, f"{MEASURES['xsimpp']}: ")] if names else []
    notes = [_about(found, names), *joined_notes(next(iter(found.values())), families)]
    notes += [note for systems in found.values() for note in missing_notes(systems, languages)]
    table = make_table(rows, len(rows), blocks, list(dict.fromkeys(notes)))
    table = replace(table, rules={group[0] for group in groups[1:]})
    return replace(table, bold=_lowest(table, groups, [*languages, AVERAGE]))


def _shares(kinds: Kinds, names: list[str]) -> dict[str, float | None]:
    """Kind -> its share of the sentences in percent, mean over the languages."""
    if not kinds:  # of a system without a score file
        return dict.fromkeys(names)
    return {
        name: sum(found.get(name, 0) for found in kinds.values()) / len(kinds) for name in names
    }


def _lowest(table: Table, groups: list[list[int]], columns: list[str]) -> set[Place]:
    """The lowest of each column within each group of rows."""
    rows = table.frame[[table.label, *columns]].values.tolist()
    negated = make_frame(
        [table.label, *columns],
        [[label, *(None if value is None else -value for value in row)] for label, *row in rows],
    )
    return {place for group in groups for place in best_places(negated, group)}


def _about(found: dict[str, list[Scores]], kinds: list[str]) -> str:
    systems = next(iter(found.values()))
    told = " Kinds of errors of xsim++ in percent of the sentences, mean over languages."
    return (
        f"FLORES-200 {systems[0].version}, devtest: sentences in percent whose English translation "
        "is not the best candidate. xsim++ has made sentences among the candidates. Bold: lowest "
        f"of our systems.{told if kinds else ''}"
    )
