"""The papers' printed numbers (`printed/*.csv`; its README names the source of each), slips
included. Languages have the codes of their table: ISO 639-1 in Table I, Tatoeba's codes elsewhere.
"""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files

from ems.tables.table import headings_of

Numbers = dict[str, dict[str, float]]  # model -> column -> value, in the paper's order
HeadingOf = Callable[[dict[str, str]], str]  # row of a CSV -> heading

AVERAGE, TOTAL = "Avg.", "Total"
REIMERS = "Reimers and Gurevych"


@cache
def read_rows(name: str) -> tuple[dict[str, str], ...]:
    text = files("ems.tables").joinpath("printed", f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def model_of(row: dict[str, str]) -> str:
    """Return the model of a row without its authors; "Ours" is the Lightweight paper's model."""
    name = (row.get("model") or row["method"]).partition(" (")[0]
    return "Lightweight" if name == "Ours" else name


@cache
def load_table(name: str, column: str | HeadingOf, value: str = "value") -> Numbers:
    """Return model -> column -> value, in the paper's order. `column` and `value` are columns of
    the CSV; if it lacks `column`, each row has one number, with this heading.
    """
    heading = column if callable(column) else lambda row: row.get(column, column)
    table: Numbers = {}
    for row in read_rows(name):
        cells = table.setdefault(model_of(row), {})
        cells |= {heading(row): float(row[value])} if row[value] else {}
    return table


@cache
def load_classes(name: str) -> dict[str, list[str]]:
    """Return heading -> the models under it."""
    classes: dict[str, dict[str, None]] = {}
    for row in read_rows(name):
        classes.setdefault(row.get("group", ""), {})[model_of(row)] = None
    return {heading: list(models) for heading, models in classes.items() if heading}


def _direction(row: dict[str, str]) -> str:
    """Return the direction of a row: "en<-de" becomes "de-en", "de" alone "en-de"."""
    if "language" in row:
        return AVERAGE if row["language"] == "overall" else f"en-{row['language']}"
    name = re.sub("(.*)<-(.*)", r"\2-\1", row["direction"]).replace("->", "-")
    return f"{name} {row.get('domain', '')}".strip()


def arrow(row: dict[str, str]) -> str:
    return _direction(row).replace("-", "->")


def load_accuracies(name: str, column: HeadingOf = _direction) -> Numbers:
    """Return model -> direction ("en-de", "en-de books"; of `column`) or AVERAGE -> percent, with
    the new rows of Table 10 to the Lightweight paper's Tables 3 (MLDoc) and 4 (XSR).
    """
    rows = read_rows("lightweight-table10-reimers") if name.startswith("lightweight") else ()
    own = [row for row in rows if name.endswith(row["group"].lower()) and model_of(row) == REIMERS]
    new = {column(row): float(row["value"]) for row in own}
    return load_table(name, column) | ({REIMERS: new} if new else {})


# --- studies: the Lightweight paper's Tables 1, 2 and 5 to 9, the monolingual paper's 1 to 3

Cells = dict[str, float | int | str]


@cache
def load_study(name: str) -> dict[str, Cells]:
    """Return row -> "XSR en->fr", a fact or a cost -> printed value (text if short, "30M")."""
    table: dict[str, Cells] = {}
    columns = headings_of("column")  # of the papers -> `facts` and `costs` of a study
    for row in read_rows(name):
        named = row.get("pair") or row.get("m") or next(iter(row.values()))
        cells = table.setdefault(model_of(row) if "method" in row else named, {})
        if "direction" in row or "language" in row:
            task = "XNLI" if "language" in row else "RCV2"
            cells[f"{task} {arrow(row)}"] = float(row["value"])
        elif "method" in row:
            facts = {columns[key]: text for key, text in row.items() if key in columns}
            cells |= {key: int(text) if text.isdigit() else text for key, text in facts.items()}
        elif "set" in row:
            cells[columns[row["set"]]] = row["printed"]
        else:
            text, column = row["value"], row["column"]
            cells[columns.get(column, column)] = float(text) if "." in text else int(text)
    return table


def paper_of_study(name: str) -> str:
    """Return the paper table of a CSV: "lightweight-table05-..." -> "Lightweight, Table 5"."""
    paper, _, number = name.partition("-table")
    return f"{paper.capitalize()}, Table {int(number[:2])}"


# --- EMS v2


TATOEBA = {"IV": "ems-v2-table04-tatoeba", "VI": "ems-v2-table06-tatoeba-unseen"}


def tatoeba_codes(table: str = "IV") -> list[str]:
    """Return the Tatoeba codes of Table IV (trained languages) or VI (unseen), in its order."""
    return [code for code in load_table(TATOEBA[table], "language")["EMS"] if code != AVERAGE]


@cache
def load_tatoeba() -> dict[str, dict[str, float | None]]:
    """Return model -> column -> P@1 in percent, mean of both directions (None: a dash). Columns:
    Tatoeba codes, the mean "IV" or "VI" of their table, and the groups of Table V.
    """
    models: dict[str, dict[str, float | None]] = {}
    for row in read_rows("ems-v2-table05-tatoeba-groups"):
        value = float(row["value"]) if row["value"] else None
        models.setdefault(model_of(row), {})[row["group"]] = value
    for table, name in TATOEBA.items():
        for model, values in load_table(name, "language").items():
            models[model] |= {table if c == AVERAGE else c: value for c, value in values.items()}
    return models


@cache
def load_groups(table: str = "V", code: str = "tatoeba_code") -> dict[str, tuple[str, ...]]:
    """Return heading ("mUSE (15)") -> the codes that the printed mean of Table V or XIV is over,
    fewer than the heading counts, since English has no score.
    """
    members: dict[str, tuple[str, ...]] = {}
    for row in read_rows("groups"):
        own, _, heading = row["group"].partition(" ")
        if own == table and row["averaged"] == "1":
            members[heading] = (*members.get(heading, ()), row[code])
    return members


def load_flores_groups() -> dict[str, tuple[str, ...]]:
    """Return heading ("mUSE (182)") -> ISO 639-1 codes of the two groups of Table VII."""
    groups = load_groups("Flores", "language").items()
    counts = {name: len(codes) * (len(codes) - 1) for name, codes in groups}
    return {f"{name.partition(' ')[0]} ({counts[name]})": codes for name, codes in groups}


@cache
def load_pairs(column: str = "ems_printed") -> dict[str, str]:
    """Return ISO 639-1 code -> cell of EMS v2 Table I, `TOTAL` last; "-" or "" is a dash."""
    return {row["language"]: row[column] for row in read_rows("ems-v2-table01-pairs")}


def in_given_order(codes: set[str], first: Sequence[str]) -> list[str]:
    """Sort codes as in `first`, "pt_BR" as "pt" is; the others follow alphabetically."""
    known = {code: code if code in first else code.partition("_")[0] for code in codes}
    places = {code: place for place, code in enumerate(first)}
    return sorted(codes, key=lambda code: (places.get(known[code], len(first)), code))


def in_table_one_order(languages: Iterable[str]) -> list[str]:
    """Sort ISO 639-1 codes as in Table I, alphabetically; codes that it lacks come last."""
    return in_given_order(set(languages), list(load_pairs()))
