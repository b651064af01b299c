"""Reads the score files of a benchmark and makes sure that they may share a table.

Numbers stand beside each other only if they come from the same data: the same benchmark, version,
SHA-256 and protocol in each file, each system once, each label the same language in all of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ems.errors import EmsError
from ems.scores import ENGLISH, UNSEEN, Score, ScoreFile, read_score_file

Families = Mapping[str, Sequence[str]]
Label = Callable[[ScoreFile, Score], str]  # what a row counts under in a table


@dataclass(frozen=True)
class Scores:
    """The scores of one system on one benchmark, or of several systems that share a table row.

    A label is a language or a direction. `values`: the mean of its rows (directions, seeds);
    `seeds`: the value of each seed; `measures`: measure -> label -> its mean; `languages`: the
    experiment's code, or UNSEEN; `counts`: sentences. `absent`: score files missing for this row.
    """

    file: ScoreFile
    system: str
    values: dict[str, float] = field(default_factory=dict)
    seeds: dict[str, list[float]] = field(default_factory=dict)
    measures: dict[str, dict[str, float]] = field(default_factory=dict)
    languages: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    absent: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The version of the data."""
        return self.file.version


def read_scores(
    paths: Sequence[Path],
    benchmark: str,
    metric: str = "",
    label: Label = ScoreFile.label_of,
    order: Iterable[str] = (),
    families: Families | None = None,
    seen: bool | None = None,
) -> list[Scores]:
    """Read score files of `benchmark`, one row per system: those of `order` first, then as given.

    `families` are systems that share a row. `seen` keeps the languages that the systems were
    trained on, or the others. Raises `EmsError` when there are no files, one is malformed or of
    another metric, they cannot share a table, or no language is kept.
    """
    if not paths:
        raise EmsError(
            "no score files were given; name at least one results/<experiment>/scores/<system>/"
            f"{benchmark}.json, or leave the table out of the experiment"
        )
    files = [read_score_file(Path(path), benchmark, metric) for path in paths]
    _check_each_system_once(files)
    for header in ("version", "data_sha256", "protocol"):
        _check_same_data(files, header)
    systems = [_scores(file, label) for file in files]
    _check_same_languages(systems)
    systems = in_order(systems, order)
    if seen is not None:
        systems = [_narrowed(system, seen) for system in systems]
        _check_left(systems, seen)
        systems = [each for each in systems if seen or each.values or each.absent]
    return joined(systems, families)


def _scores(file: ScoreFile, label: Label) -> Scores:
    """The rows of a file by their labels."""
    rows: dict[str, dict[str, list[Score]]] = {}
    for row in file.rows:
        rows.setdefault(row.measure, {}).setdefault(label(file, row), []).append(row)
    means = {
        measure: {name: sum(row.value for row in of) / len(of) for name, of in labels.items()}
        for measure, labels in rows.items()
    }
    own = rows.get("", {})
    seeds = {name: [row.value for row in of if row.seed is not None] for name, of in own.items()}
    return Scores(
        file,
        file.system,
        means.pop("", {}),
        {name: values for name, values in seeds.items() if values},
        means,
        {name: _language(file, of[0]) for name, of in own.items()},
        {name: of[0].count for name, of in own.items()},
    )


def _language(file: ScoreFile, row: Score) -> str:
    """The experiment's language of a row beside English, or UNSEEN."""
    sides = [file.languages.get(name, ENGLISH) for name in (row.source, row.target)]
    if UNSEEN in sides:
        return UNSEEN
    others = [side for side in sides if side != ENGLISH]
    return others[-1] if others else ENGLISH


def in_order(systems: list[Scores], order: Iterable[str]) -> list[Scores]:
    """The systems that `order` names first, the others as given. One without a score file keeps
    its row, without values.
    """
    known = {system.system: system for system in systems}
    names = dict.fromkeys([*order, *known])
    return [known[name] if name in known else _absent(name, systems[0].file) for name in names]


def _absent(name: str, like: ScoreFile) -> Scores:
    return Scores(like, name, absent=(f"{name}/{like.path.name}",))


def joined(systems: list[Scores], families: Families | None) -> list[Scores]:
    """The systems, with one row for each family of systems that have no label in common.

    `families`: its name -> its systems. The row stands where the first of them stood.
    """
    rows = {system.system: system for system in systems}
    for name, members in (families or {}).items():
        own = [rows[member] for member in members if member in rows]
        labels = [label for member in own for label in member.values]
        if len(own) > 1 and len(labels) == len(set(labels)):
            row = _together(name, own)
            last = {member.system for member in own[1:]}
            rows = {
                key: row if key == own[0].system else value
                for key, value in rows.items()
                if key not in last
            }
    return list(rows.values())


def _together(name: str, systems: list[Scores]) -> Scores:
    """One row of systems that have no label in common."""
    merged = {
        key: {label: value for each in systems for label, value in getattr(each, key).items()}
        for key in ("values", "seeds", "languages", "counts")
    }
    measures = dict.fromkeys(measure for each in systems for measure in each.measures)
    return replace(
        systems[0],
        system=name,
        **merged,
        measures={
            measure: {k: v for each in systems for k, v in each.measures.get(measure, {}).items()}
            for measure in measures
        },
        absent=tuple(file for each in systems for file in each.absent),
    )


def _narrowed(system: Scores, seen: bool) -> Scores:
    """The system with the values of languages trained on, or of the others."""
    kept = {
        label: value
        for label, value in system.values.items()
        if (system.languages[label] != UNSEEN) == seen
    }
    return replace(system, values=kept)


def _check_left(systems: list[Scores], seen: bool) -> None:
    if any(system.values for system in systems):
        return
    path = systems[0].file.path
    if seen:
        raise EmsError(
            f"{path}: expected a language that was trained on, found only languages of "
            f'`language` "{UNSEEN}"; score the languages of the experiment too, or leave this '
            "table out of it"
        )
    raise EmsError(
        f'{path}: expected a language that no encoder saw (`language` "{UNSEEN}"), '
        "found only languages trained on; let the experiment score unseen languages too, or "
        "leave this table out of it"
    )


def _check_each_system_once(files: list[ScoreFile]) -> None:
    first: dict[str, ScoreFile] = {}
    for file in files:
        if file.system in first:
            raise EmsError(
                f"system {file.system} has two score files, {first[file.system].path} and "
                f"{file.path}; a table has one row per system: leave one of them out"
            )
        first[file.system] = file


def _check_same_data(files: list[ScoreFile], header: str) -> None:
    values = [getattr(file, header) for file in files]
    if any(value != values[0] for value in values):
        listed = "\n".join(f"  {value}  {f.path}" for value, f in zip(values, files, strict=True))
        raise EmsError(
            f"the {files[0].benchmark} scores are of different data, so they cannot share a table; "
            f"{header}:\n{listed}\ndelete the score files of the old data and run the benchmark "
            "again"
        )


def _check_same_languages(systems: list[Scores]) -> None:
    """A label that is one language in one file and another, or unseen, in the next is an error."""
    first: dict[str, Scores] = {}
    for system in systems:
        for label, language in system.languages.items():
            before = first.setdefault(label, system)
            if before.languages[label] != language:
                raise EmsError(
                    f"{system.file.path}: {label} is language {language}, but "
                    f"{before.languages[label]} in {before.file.path}; delete the older of the two "
                    "and run the benchmark again"
                )
