"""The papers' printed numbers, as data: `printed/*.csv`, whose README tells where each is from.

Notable choices:
- numbers are kept as the paper prints them, slips included; nothing here is recomputed;
- a language is named as its table names it: ISO 639-1 in Table I, Tatoeba's codes elsewhere.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

AVERAGE = "Avg."
TOTAL = "Total"


@dataclass(frozen=True)
class Group:
    """A group of languages of EMS v2 Table V.

    `name` is the short one ("mUSE"), `heading` the paper's ("mUSE (15)"); `languages` are the
    Tatoeba codes that enter the printed mean, fewer than the heading counts (English has no score).
    """

    name: str
    heading: str
    languages: tuple[str, ...]


@dataclass(frozen=True)
class PrintedModel:
    """One model's row of EMS v2 Tables IV, V and VI: P@1 in percent, mean of both directions.

    `seen` and `unseen` map Tatoeba codes to the values of Tables IV and VI, `groups` headings to
    Table V (None: printed as a dash); `unsettled` lists the languages whose value has two readings.
    """

    name: str
    seen: dict[str, float]
    seen_average: float
    unseen: dict[str, float]
    unseen_average: float
    groups: dict[str, float | None]
    unsettled: tuple[str, ...]

    @property
    def values(self) -> dict[str, float]:
        """Both tables in one: Tatoeba code -> P@1."""
        return {**self.seen, **self.unseen}

    def average(self, languages: set[str]) -> float | None:
        """The printed average over exactly these languages, None where the paper prints none."""
        if languages == set(self.seen):
            return self.seen_average
        return self.unseen_average if languages == set(self.unseen) else None


@dataclass(frozen=True)
class PrintedPairs:
    """One language of EMS v2 Table I: sentence pairs with English, as printed and as a number.

    A dash of the paper is "-" and None.
    """

    language: str
    laser_printed: str
    laser: int | None
    ems_printed: str
    ems: int | None


def _rows(name: str) -> list[dict[str, str]]:
    text = files("ems.tables").joinpath("printed", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _short(model: str) -> str:
    return model.removesuffix(" (ours)")  # the paper's "ours" is not ours


def _scores(name: str) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    for row in _rows(name):
        scores.setdefault(_short(row["model"]), {})[row["language"]] = float(row["value"])
    return scores


def _group_means() -> dict[str, dict[str, float | None]]:
    means: dict[str, dict[str, float | None]] = {}
    for row in _rows("ems-v2-table05-tatoeba-groups.csv"):
        value = float(row["value"]) if row["value"] else None
        means.setdefault(_short(row["model"]), {})[row["group"]] = value
    return means


def _unsettled() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name in ("ems-v2-table04-tatoeba.csv", "ems-v2-table06-tatoeba-unseen.csv"):
        for row in _rows(name):
            if row["flag"] == "unsettled":
                model = _short(row["model"])
                found[model] = (*found.get(model, ()), row["language"])
    return found


@cache
def load_models() -> dict[str, PrintedModel]:
    """The eight models of EMS v2 Tables IV and VI by name, without the paper's "(ours)"."""
    seen = _scores("ems-v2-table04-tatoeba.csv")
    unseen = _scores("ems-v2-table06-tatoeba-unseen.csv")
    groups, unsettled = _group_means(), _unsettled()
    return {
        name: PrintedModel(
            name=name,
            seen_average=seen[name].pop(AVERAGE),
            seen=seen[name],
            unseen_average=unseen[name].pop(AVERAGE),
            unseen=unseen[name],
            groups=groups[name],
            unsettled=unsettled.get(name, ()),
        )
        for name in seen
    }


@cache
def load_groups() -> tuple[Group, ...]:
    """The six groups of EMS v2 Table V in the paper's order, with the languages it averages."""
    members: dict[str, list[str]] = {}
    for row in _rows("groups.csv"):
        table, _, heading = row["group"].partition(" ")
        if table == "V" and row["averaged"] == "1":
            members.setdefault(heading, []).append(row["tatoeba_code"])
    return tuple(
        Group(heading.rpartition(" ")[0], heading, tuple(languages))
        for heading, languages in members.items()
    )


@cache
def paper_order() -> dict[str, int]:
    """Tatoeba code -> place in the paper: the 58 languages of Table IV, then the 54 of Table VI."""
    return {language: place for place, language in enumerate(load_models()["EMS"].values)}


def in_paper_order(languages: set[str]) -> list[str]:
    """Tatoeba codes in the paper's order; those it does not know come last, by the alphabet."""
    order = paper_order()
    return sorted(languages, key=lambda code: (order.get(code, len(order)), code))


@cache
def load_pairs() -> dict[str, PrintedPairs]:
    """EMS v2 Table I by ISO 639-1 code, in the paper's order, without the totals."""
    return {name: pairs for name, pairs in _pairs().items() if name != TOTAL}


def in_table_one_order(languages: Iterable[str]) -> list[str]:
    """ISO 639-1 codes in the order of Table I, the alphabet; those it lacks come last."""
    known = load_pairs()
    return sorted(languages, key=lambda name: (name not in known, name))


@cache
def load_grid() -> dict[str, dict[str, bool]]:
    """EMS v2 Table II by our name of the setting: value as printed -> whether it was chosen."""
    grid: dict[str, dict[str, bool]] = {}
    for row in _rows("ems-v2-table02-grid.csv"):
        grid.setdefault(row["setting"], {})[row["value"]] = row["chosen"] == "1"
    return grid


def load_pair_totals() -> PrintedPairs:
    """The totals of EMS v2 Table I as printed."""
    return _pairs()[TOTAL]


def _pairs() -> dict[str, PrintedPairs]:
    return {
        row["language"]: PrintedPairs(
            language=row["language"],
            laser_printed=row["laser_printed"],
            laser=int(row["laser_pairs"]) if row["laser_pairs"] else None,
            ems_printed=row["ems_printed"],
            ems=int(row["ems_pairs"]) if row["ems_pairs"] else None,
        )
        for row in _rows("ems-v2-table01-pairs.csv")
    }
