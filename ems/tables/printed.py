"""The papers' printed numbers, as data: `printed/*.csv`, whose README tells where each is from.

Notable choices:
- numbers are kept as the paper prints them, slips included; nothing here is recomputed;
- a language is named as its table names it: ISO 639-1 in Table I, Tatoeba's codes elsewhere.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

AVERAGE = "Avg."
TOTAL = "Total"
ACCURACIES = {  # benchmark -> the table that prints its accuracies
    "mldoc": "ems-v2-table11-mldoc.csv",
    "cls": "ems-v2-table12-amazon-v1.csv",
    "marc": "ems-v2-table13-amazon-v2.csv",
    "mldoc_bilingual": "lightweight-table03-mldoc.csv",
    "xnli": "monolingual-table01-xnli.csv",
    "rcv2": "monolingual-table02-rcv2.csv",
}


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
    seen_average: float | None
    unseen: dict[str, float]
    unseen_average: float | None
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


REIMERS = "Reimers and Gurevych"
_NAMES = {"Ours": "Lightweight"}  # the Lightweight paper's "ours" is not ours either


@cache
def load_table(name: str, model: str, column: str) -> dict[str, dict[str, float]]:
    """A table of one number a cell: model -> column -> value, averages too, in the paper's order.

    `model` and `column` are the columns of the CSV that name them; what follows a model's name in
    brackets goes.
    """
    table: dict[str, dict[str, float]] = {}
    for row in _rows(f"{name}.csv"):
        if row["value"]:
            table.setdefault(_short(row[model]), {})[row[column]] = float(row["value"])
    return table


def _rows(name: str) -> list[dict[str, str]]:
    text = files("ems.tables").joinpath("printed", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _short(model: str) -> str:
    """Without what follows in brackets: authors, or "(ours)", which is the paper's, not ours."""
    short = model.partition(" (")[0]
    return _NAMES.get(short, short)


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
    """The eight models of EMS v2 Tables IV and VI by name, without the paper's "(ours)", and before
    them mUSE, of which only Table V has a mean.
    """
    seen = _scores("ems-v2-table04-tatoeba.csv")
    unseen = _scores("ems-v2-table06-tatoeba-unseen.csv")
    groups, unsettled = _group_means(), _unsettled()
    return {
        name: PrintedModel(
            name=name,
            seen_average=seen.get(name, {}).pop(AVERAGE, None),
            seen=seen.get(name, {}),
            unseen_average=unseen.get(name, {}).pop(AVERAGE, None),
            unseen=unseen.get(name, {}),
            groups=groups[name],
            unsettled=unsettled.get(name, ()),
        )
        for name in groups
    }


@cache
def load_groups(table: str = "V") -> tuple[Group, ...]:
    """The groups of EMS v2 Table V, or of Table XIV, in the paper's order, with the languages it
    averages.
    """
    members: dict[str, list[str]] = {}
    for row in _rows("groups.csv"):
        own, _, heading = row["group"].partition(" ")
        if own == table and row["averaged"] == "1":
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


def in_given_order(codes: set[str], first: Sequence[str]) -> list[str]:
    """The codes that `first` names, in its order; the others after them, by the alphabet."""
    return [*(code for code in first if code in codes), *sorted(codes - set(first))]


@cache
def load_pairs() -> dict[str, PrintedPairs]:
    """EMS v2 Table I by ISO 639-1 code, in the paper's order, without the totals."""
    return {name: pairs for name, pairs in _pairs().items() if name != TOTAL}


def in_table_one_order(languages: Iterable[str]) -> list[str]:
    """ISO 639-1 codes in the order of Table I, the alphabet; those it lacks come last."""
    known = load_pairs()
    return sorted(languages, key=lambda name: (name not in known, name))


@cache
def load_flores() -> dict[str, dict[str, float]]:
    """EMS v2 Table VII: model -> P@1 by column ("mUSE (182)", "af-gu") in the paper's order.

    Models are without the paper's "(ours)"; its order of the columns is that of the table.
    """
    found: dict[str, dict[str, float]] = {}
    for row in _rows("ems-v2-table07-flores.csv"):
        found.setdefault(_short(row["model"]), {})[row["pair"]] = float(row["value"])
    return found


@cache
def load_flores_groups() -> dict[str, tuple[str, ...]]:
    """The two groups of Table VII by heading, "mUSE (182)": their languages by ISO 639-1 code."""
    members: dict[str, list[str]] = {}
    for row in _rows("groups.csv"):
        table, _, heading = row["group"].partition(" ")
        if table == "Flores" and row["averaged"] == "1":
            members.setdefault(heading.partition(" ")[0], []).append(row["language"])
    return {
        f"{name} ({len(languages) * (len(languages) - 1)})": tuple(languages)
        for name, languages in members.items()
    }


@cache
def load_similarities() -> dict[str, float]:
    """EMS v2 section V-H: model -> cosine of the two sentences."""
    rows = _rows("ems-v2-section5h-similarity.csv")
    return {_short(row["model"]): float(row["cosine_similarity"]) for row in rows}


@cache
def load_grid() -> dict[str, dict[str, bool]]:
    """EMS v2 Table II by our name of the setting: value as printed -> whether it was chosen."""
    grid: dict[str, dict[str, bool]] = {}
    for row in _rows("ems-v2-table02-grid.csv"):
        grid.setdefault(row["setting"], {})[row["value"]] = row["chosen"] == "1"
    return grid


@cache
def load_printed_models() -> tuple[dict[str, str], ...]:
    """The rows of EMS v2 Table III as printed; `model` without the paper's "(ours)"."""
    rows = _rows("ems-v2-table03-models.csv")
    return tuple({**row, "model": _short(row["model"])} for row in rows)


@cache
def load_ablation() -> dict[str, dict[str, float]]:
    """EMS v2 Table XIV: row -> value by column ("Tatoeba Avg. (58)"), as printed."""
    found: dict[str, dict[str, float]] = {}
    for row in _rows("ems-v2-table14-ablation.csv"):
        if row["value"]:
            found.setdefault(_short(row["model"]), {})[row["column"]] = float(row["value"])
    return found


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


@cache
def load_accuracies(name: str) -> dict[str, dict[str, float]]:
    """Model -> direction ("en-de", "en-de books") or AVERAGE -> accuracy in percent, of one of the
    tables in ACCURACIES, in the paper's order.
    """
    found: dict[str, dict[str, float]] = {}
    for row in _rows(ACCURACIES[name]):
        if row["value"]:
            found.setdefault(_model(row), {})[_direction(row)] = float(row["value"])
    if name == "mldoc_bilingual":
        found[REIMERS] = {_direction(row): float(row["value"]) for row in _reimers("MLDoc")}
    return found


@cache
def load_europarl() -> dict[str, dict[str, float]]:
    """Lightweight Table 4, and of Table 10 what is new: model -> direction, "en->fr" -> P@1."""
    found = load_table("lightweight-table04-xsr", "method", "direction")
    return {**found, REIMERS: {row["direction"]: float(row["value"]) for row in _reimers("XSR")}}


def _reimers(task: str) -> list[dict[str, str]]:
    """Lightweight Table 10 on MLDoc or XSR, without the row that Tables 3 and 4 have too."""
    rows = _rows("lightweight-table10-reimers.csv")
    return [row for row in rows if row["group"] == task and _model(row) == REIMERS]


@cache
def load_classes(name: str) -> dict[str, list[str]]:
    """Heading -> the models under it, of one of the tables in ACCURACIES that has headings."""
    found: dict[str, list[str]] = {}
    for row in _rows(ACCURACIES[name]):
        models = found.setdefault(row.get("group", ""), [])
        models += [] if _model(row) in models else [_model(row)]
    found.pop("", None)
    return found


def _model(row: dict[str, str]) -> str:
    return _short(row.get("model") or row["method"])


def _direction(row: dict[str, str]) -> str:
    """The paper's "en<-de" is "de-en" here; one that names a language only is from English."""
    if "language" in row:
        return AVERAGE if row["language"] == "overall" else f"en-{row['language']}"
    first, arrow, second = re.match("(.*?)(?:(<-|->)(.*))?$", row["direction"]).groups("")
    name = {"": first, "->": f"{first}-{second}", "<-": f"{second}-{first}"}[arrow]
    return f"{name} {row.get('domain', '')}".strip()
