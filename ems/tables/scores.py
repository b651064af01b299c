"""Reads the score files of a benchmark and makes sure that they may share a table.

Numbers stand beside each other only if they come from the same data: the same benchmark, version,
SHA-256 and protocol in each file, each system once, each code the same language in all of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import read_json
from ems.shapes import SOME, TEXT, Shape, mapping, misfit, named, record, shown

Families = Mapping[str, Sequence[str]]
UNSEEN = "und"  # ISO 639-2's "undetermined": the language of a score that no encoder was trained on


@dataclass(frozen=True)
class Scores:
    """One system's scores on one benchmark.

    The keys are the benchmark's own codes of the languages. `values`: percent, of P@1 the mean of
    both directions unless another was asked for; `languages`: the experiment's code, or `UNSEEN`;
    `sentences`: how many were ranked; `protocol`: settings of the scoring, where there are any.
    `absent`: files "<system>/<benchmark>.json" that the row should have and that nobody gave.
    """

    path: Path
    system: str
    version: str
    data_sha256: str
    values: dict[str, float]
    languages: dict[str, str]
    sentences: dict[str, int]
    protocol: tuple[tuple[str, Any], ...] = ()
    absent: tuple[str, ...] = ()

    def setting(self, key: str, shape: Shape) -> Any:
        """A setting of the protocol. Raises `Damaged` when the file does not have it."""
        settings = dict(self.protocol)
        if problem := misfit({"protocol": settings}, record({"protocol": record({key: shape})})):
            raise Damaged(self.path, problem)
        return settings[key]


Reader = Callable[[Path, str, Any], float]  # of a file, a code and what `directions` has under it
VALUE: Shape = {"type": ["string", "number", "boolean", "null"], "description": "a setting"}


def scores_shape(benchmark: str, metric: str, directions: Shape, **others: Shape) -> Shape:
    """The shape of a score file of a benchmark, by those of an entry of `directions` and of what
    else it has.
    """
    header = {
        "benchmark": {"enum": [benchmark]},
        "metric": {"enum": [metric]},
        **dict.fromkeys(("system", "version", "data_sha256"), TEXT),
        "directions": {
            **mapping(directions, least=1),
            "description": "scores of at least one language",
        },
    }
    optional = {} if "protocol" in others else {"protocol": mapping(VALUE)}
    return named(f"{benchmark}.json", record({**header, **others}, optional))


def percentage(path: Path, code: str, entry: Any, key: str) -> float:
    """The percentage that an entry of `directions` has under `key`. Raises `Damaged`."""
    return percent(path, f"{code}.{key}", entry.get(key))


def percent(path: Path, where: str, value: Any) -> float:
    """A percentage of `directions`, checked to be one. Raises `Damaged`."""
    if type(value) not in (int, float) or not 0 <= value <= 100:  # NaN is not either
        expected = f"expected a percentage under `directions.{where}`"
        raise Damaged(path, f"{expected}, found {shown(value)}")
    return float(value)


def mean_of_both(path: Path, code: str, entry: Any) -> float:
    """Mean of `to_english` and `from_english` in percent (EMS v2 Table IV)."""
    return sum(percentage(path, code, entry, key) for key in ("to_english", "from_english")) / 2


def read_scores(
    paths: Sequence[Path],
    benchmark: str,
    metric: str = "P@1",
    value: Reader = mean_of_both,
    read: Callable[[Path], Scores] | None = None,
) -> list[Scores]:
    """Read score files of `benchmark` ("tatoeba", "ntrex") in the order given.

    `value` reads the number of each language; `read` a file of another form. Raises `EmsError` when
    there are no files, one is malformed or of another metric, or they cannot share a table.
    """
    if not paths:
        raise EmsError(
            "no score files were given; name at least one results/<experiment>/scores/<system>/"
            f"{benchmark}.json, or leave the table out of the experiment"
        )
    read = read or partial(_read_one, of=(benchmark, metric), value=value)
    scores = [read(Path(path)) for path in paths]
    each_system_once(scores)
    for what in ("version", "data_sha256", "protocol"):
        same_data(scores, what, benchmark)
    _same_languages(scores)
    return scores


def in_order(systems: list[Scores], order: Iterable[str]) -> list[Scores]:
    """The systems that `order` names first, the others as given. One without a score file keeps
    its row, without values.
    """
    known = {system.system: system for system in systems}
    names = dict.fromkeys([*order, *known])
    return [known[name] if name in known else _absent(name, systems[0]) for name in names]


def _absent(name: str, like: Scores) -> Scores:
    path = like.path.parent.with_name(name) / like.path.name
    file = f"{name}/{path.name}"
    none = replace(like, values={}, languages={}, sentences={})
    return replace(none, path=path, system=name, absent=(file,))


def joined(systems: list[Scores], families: Families | None) -> list[Scores]:
    """The systems, with one row for each family of systems that have no language in common.

    `families`: its name -> its systems. The row stands where the first of them stood.
    """
    rows = {system.system: system for system in systems}
    for name, members in (families or {}).items():
        found = [rows[member] for member in members if member in rows]
        codes = [code for member in found for code in member.values]
        if len(found) > 1 and len(codes) == len(set(codes)):
            row = _together(name, found)
            last = {member.system for member in found[1:]}
            rows = {
                key: row if key == found[0].system else value
                for key, value in rows.items()
                if key not in last
            }
    return list(rows.values())


def _together(name: str, systems: list[Scores]) -> Scores:
    return replace(
        systems[0],
        system=name,
        values={code: value for each in systems for code, value in each.values.items()},
        languages={code: value for each in systems for code, value in each.languages.items()},
        sentences={code: value for each in systems for code, value in each.sentences.items()},
        absent=tuple(file for each in systems for file in each.absent),
    )


def only_seen(systems: list[Scores]) -> list[Scores]:
    """The systems with the values of languages trained on; `EmsError` when there are none."""
    found = [_narrowed(system, unseen=False) for system in systems]
    if not any(system.values for system in found):
        raise EmsError(
            f"{systems[0].path}: expected a language that was trained on, found only languages of "
            f'`language` "{UNSEEN}"; score the languages of the experiment too, or leave this '
            "table out of it"
        )
    return found


def only_unseen(systems: list[Scores]) -> list[Scores]:
    """The systems that have values of languages never trained on, with these, and those without a
    score file; `EmsError` when no system has any.
    """
    found = [_narrowed(system, unseen=True) for system in systems]
    if not any(system.values for system in found):
        raise EmsError(
            f'{systems[0].path}: expected a language that no encoder saw (`language` "{UNSEEN}"), '
            "found only languages trained on; let the experiment score unseen languages too, or "
            "leave this table out of it"
        )
    return [system for system in found if system.values or system.absent]


def _narrowed(system: Scores, unseen: bool) -> Scores:
    """The system with the values of one kind of language."""
    kept = {
        code: value
        for code, value in system.values.items()
        if (system.languages[code] == UNSEEN) == unseen
    }
    return replace(system, values=kept)


def _read_one(path: Path, of: tuple[str, str], value: Reader) -> Scores:
    entry = record({"language": TEXT, "sentences": SOME})
    data = read_json(path, scores_shape(*of, entry))
    directions = data["directions"]
    return Scores(
        path=path,
        system=data["system"],
        version=data["version"],
        data_sha256=data["data_sha256"],
        values={code: value(path, code, entry) for code, entry in directions.items()},
        languages={code: entry["language"] for code, entry in directions.items()},
        sentences={code: entry["sentences"] for code, entry in directions.items()},
        protocol=tuple(sorted(data.get("protocol", {}).items())),
    )


def each_system_once(scores: list[Scores]) -> None:
    first: dict[str, Scores] = {}
    for score in scores:
        if score.system in first:
            raise EmsError(
                f"system {score.system} has two score files, {first[score.system].path} and "
                f"{score.path}; a table has one row per system: leave one of them out"
            )
        first[score.system] = score


def same_data(scores: list[Scores], what: str, benchmark: str) -> None:
    found = {getattr(score, what) for score in scores}
    if len(found) > 1:
        listed = "\n".join(f"  {getattr(score, what)}  {score.path}" for score in scores)
        raise EmsError(
            f"the {benchmark} scores are of different data, so they cannot share a table; {what}:\n"
            f"{listed}\ndelete the score files of the old data and run the benchmark again"
        )


def _same_languages(scores: list[Scores]) -> None:
    """A code that is one language in one file and another, or unseen, in the next is an error."""
    first: dict[str, Scores] = {}
    for score in scores:
        for code, language in score.languages.items():
            before = first.setdefault(code, score)
            if before.languages[code] != language:
                raise EmsError(
                    f"{score.path}: {code} is language {language}, but {before.languages[code]} in "
                    f"{before.path}; delete the older of the two and run the benchmark again"
                )
