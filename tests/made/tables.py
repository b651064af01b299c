"""Tables and what they are made of: reports, costs, models, and the papers' printed tables."""

import csv
import html
import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

import numpy as np
from conftest import ROOT
from made.scores import (
    EUROPARL,
    write_accuracies,
    write_bucc,
    write_cosine,
    write_flores,
    write_retrieval,
    write_scores,
)
from safetensors.numpy import save_file

from ems.config.plugins import benchmarks
from ems.tables.declarations import tables_of
from ems.tables.engine import Declaration, write_systems
from ems.tables.printed import load_flores_groups
from ems.tables.study import write_ablation_table

EMBEDDING, LAYER, HEAD = (10, 4), (4, 3), (2, 5)  # shapes of a model's weights
SEVEN = ["cmn", "deu", "fra", "ita", "jpn", "rus", "spa"]
SUFFIXES = (".tex", ".md", ".csv")
DECLARED = {
    table: made
    for name in benchmarks()
    for table, made in tables_of(name).items()
    if isinstance(made, Declaration)
}


def write_table(name, scores, out, printed=(), order=None, families=None):
    """Write a declared table of systems x columns; its rows by their label."""
    write_systems(DECLARED[name], scores, out, list(printed), order or (), families)
    return csv_rows(out)


def csv_rows(path):
    """Rows of a written table by their label."""
    with open(path.with_suffix(".csv"), encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    return {next(iter(row.values())).removeprefix("'"): row for row in rows}


def values_of(rows, suffix=""):
    """Label without `suffix` -> cells, of the rows whose labels end in it."""
    return {
        label.removesuffix(suffix): {name: row[name] for name in list(row)[1:]}
        for label, row in rows.items()
        if label.endswith(suffix)
    }


def write_report(path, entries, against=("tatoeba",)):
    """A decontamination report; entries: (corpus, role, pair, read, removed, by_benchmark)."""
    keys = ("corpus", "role", "pair", "read", "removed", "by_benchmark")
    corpora = [{"version": "v1", **dict(zip(keys, entry, strict=True))} for entry in entries]
    for corpus in corpora:
        corpus["kept"] = corpus["read"] - sum(corpus["removed"].values())
    report = {"key": "folded", "against": list(against), "corpora": corpora}
    path.write_text(json.dumps(report), encoding="utf-8")
    return path


def demo_report(path):
    """A report with all that there may be: two corpora, both roles, a pair without English."""
    removed = {"tatoeba": {"en": 100, "fr": 90, "pairs": 120}, "flores200": {"en": 1, "pairs": 1}}
    german = {"tatoeba": {"en": 7, "de": 8, "pairs": 9}}
    entries = [
        ("Demo", "train", "en-fr", 18120, {"odd": 0, "evaluation": 120, "cap": 0}, removed),
        ("TED", "train", "en-fr", 1000, {"odd": 5, "evaluation": 0}, {}),
        ("Demo", "train", "de-en", 2000, {"evaluation": 9, "cap": 91}, german),
        ("TED", "train", "de-fr", 50, {}, {}),
        ("Demo", "validation", "en-fr", 500, {"evaluation": 3}, {"tatoeba": {"pairs": 3}}),
    ]
    return write_report(path, entries, ("tatoeba", "flores200"))


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def write_cost(folder, name, stage, seconds=1.0, cpu=1.0, memory=100.0, /, **changes):
    """The costs of one job, in costs/`name`.json; a value of None takes the key away."""
    data = {"stage": stage, "seconds": seconds, "cpu_seconds": cpu, "max_rss_mb": memory}
    kept = {key: value for key, value in {**data, **changes}.items() if value is not None}
    return write_lines(folder / f"{name}.json", [kept])


def times_file(folder, system, steps, seconds):
    rows = [{"step": steps // 2, "seconds": seconds / 3}, {"step": steps, "seconds": seconds}]
    return write_lines(folder / f"{system}.times.jsonl", rows)


def write_model(folder, name, languages, share=1, **sizes):
    """A model folder as training leaves it, as far as the table reads it."""
    place = folder / "models" / name
    place.mkdir(parents=True)
    encoder = {"tokens.weight": np.zeros(EMBEDDING, "f4"), "layer": np.zeros(LAYER, "f4")}
    save_file(encoder, place / "model.safetensors")
    save_file({"head": np.zeros(HEAD, "f4")}, place / "heads.safetensors")
    training = {"system": {"train": {"corpus_share": share}}}
    model = {"layers": 2, "width": 8, "heads": 2, "feed_forward": 8, **sizes}
    description = {"name": name, "languages": languages, "model": model, "training": training}
    (place / "model.json").write_text(json.dumps(description))
    return place / "model.json"


def texts(path):
    """What a .svg says, in order."""
    svg = path.with_suffix(".svg").read_text(encoding="utf-8")
    return [html.unescape(text) for text in re.findall(r"<text [^>]*>(.*?)</text>", svg)]


def pixels(path):
    return struct.unpack(">II", path.with_suffix(".png").read_bytes()[16:24])


# --- the printed tables, read from their CSVs without ems, and score files that hold them


MUSE, _ = load_flores_groups().values()
COPIES = ROOT / "ems" / "tables" / "printed"
AVERAGE = "Avg."
LOW_PAIRS = ["af-gu", "hi-hy", "jv-ka", "kk-mr", "my-nb", "sw-ta", "te-tl", "ur-yo"]
GROUPS = (">300k (43)", "<300k (15)")  # of Table XIV


def read(name, kept=lambda row: True):
    with open(COPIES / f"{name}.csv", encoding="utf-8", newline="") as handle:
        return [row for row in csv.DictReader(handle) if kept(row)]


def named(row):
    """The model of a row without authors; the papers' "ours" has another name here."""
    name = (row.get("model") or row["method"]).split(" (")[0]
    return "Lightweight" if name == "Ours" else name


def arrow(row):
    """en-de and en->de are en->de here, en<-de is de->en; a language alone is learnt in English."""
    text = row.get("direction") or row["language"]
    if text in (AVERAGE, "overall"):
        return AVERAGE
    if "language" in row:
        return row["language"]
    first, sign, second = re.fullmatch("(..)(->|<-|-)(..)", text).groups()
    turned = f"{second}->{first}" if sign == "<-" else f"{first}->{second}"
    return f"{turned} {row['domain']}" if row.get("domain") else turned


@dataclass
class Cells:
    """A printed table: model -> column -> cell, as text, and the cells that are best."""

    rows: dict[str, dict[str, str]]
    best: set[tuple[str, str]] = field(default_factory=set)

    @property
    def columns(self):
        return list(dict.fromkeys(column for row in self.rows.values() for column in row))


def cells(name, column, kept=lambda row: True):
    """The table of a CSV; `column` tells the column of a row."""
    table = Cells({})
    for row in read(name, kept):
        table.rows.setdefault(named(row), {})[column(row)] = row["value"]
        if row.get("best") == "1":
            table.best.add((named(row), column(row)))
    return table


def tatoeba_cells():
    """Tables IV and V in one: mUSE, which only V has, comes first there."""
    order = cells("ems-v2-table05-tatoeba-groups", itemgetter("group"))
    values = cells("ems-v2-table04-tatoeba", itemgetter("language"))
    blank = dict.fromkeys(values.columns, "")
    rows = {name: values.rows.get(name, blank) | of for name, of in order.rows.items()}
    return Cells(rows, values.best | order.best)


def lightweight(name, task, column):
    """A table of Lightweight and the rows of Table 10, which repeats its row "Ours"."""
    new = lambda row: row["group"] == task and named(row) != "Lightweight"  # noqa: E731
    others = cells("lightweight-table10-reimers", column, new)
    return Cells(cells(name, column).rows | others.rows)


def cosines():
    rows = read("ems-v2-section5h-similarity")
    return Cells({named(row): {"Cosine": row["cosine_similarity"]} for row in rows})


# --- score files that hold the cells of one row


def numbers(row):
    return {name: float(value) for name, value in row.items() if value and name != AVERAGE}


def of_tatoeba(folder, system, row, language=None):
    values = {name: value for name, value in numbers(row).items() if "(" not in name}
    languages = language and dict.fromkeys(values, language)
    return [write_scores(folder, system, values, languages)] if values else []


def of_flores(folder, system, row):
    """The pairs of the paper, and all other directions such that the means of the groups fit."""
    values, low = numbers(row), 16 * 15
    pairs = {name: value for name, value in values.items() if "(" not in name}
    rest = (low * values["<300k (240)"] - 2 * sum(pairs.values())) / (low - 2 * len(pairs))

    def of(query, other):
        if query in MUSE and other in MUSE:
            return values["mUSE (182)"]
        return pairs.get(f"{query}-{other}", pairs.get(f"{other}-{query}", rest))

    languages = [*MUSE, *(code for pair in pairs for code in pair.split("-"))]
    return [write_flores(folder, system, languages, of)]


def of_bucc(folder, system, row):
    return [write_bucc(folder, system, {name[3:]: value for name, value in numbers(row).items()})]


def of_paracrawl(folder, system, row):
    return [write_retrieval(folder, system, "paracrawl", numbers(row))]


def of_europarl(folder, system, row):
    codes = [name[-2:] for name in numbers(row) if name.startswith("en->")]
    both = {code: (float(row[f"{code}->en"]), float(row[f"en->{code}"])) for code in codes}
    return [write_retrieval(folder, system, "europarlxsr", both, EUROPARL)]


def of_accuracy(benchmark, folder, system, row):
    named = {name: name.replace("->", "-") if "->" in name else f"en-{name}" for name in row}
    values = {named[name]: [value] for name, value in numbers(row).items()}
    return [write_accuracies(folder, benchmark, system, values)]


def of_ablation(folder, system, row):
    kept = {group: [] for group in GROUPS}
    for entry in read("groups", lambda row: row["group"].startswith("XIV ")):
        if entry["averaged"] == "1":
            kept[entry["group"].removeprefix("XIV ")].append(entry["tatoeba_code"])
    values = numbers(row)
    tatoeba = {code: values[f"Tatoeba {name}"] for name, codes in kept.items() for code in codes}
    pairs = dict.fromkeys(LOW_PAIRS, row["Flores <300k (240)"])
    flores = {name.removeprefix("Flores "): row[name] for name in row if name.startswith("Flores")}
    codes = ("de", "es", "fr", "it", "ja", "ru", "zh")
    there = {f"en-{code}": [values["MLDoc en->X Avg."]] for code in codes}
    back = {f"{code}-en": [values["MLDoc X->en Avg."]] for code in codes}
    return [
        write_scores(folder, system, tatoeba),
        *of_flores(folder, system, flores | pairs),
        write_accuracies(folder, "mldoc", system, there | back),
    ]


def of_cosine(folder, system, row):
    return [write_cosine(folder, system, float(row["Cosine"]))]


@dataclass
class Paper:
    """A table of a paper: its cells, what makes our score files, our table, what its note names.

    `every`: the one name that shows all of the paper's rows; `own_columns` come after the paper's.
    """

    cells: Callable
    scores: Callable
    table: str
    where: str
    every: str = ""
    own_columns: tuple[str, ...] = ()

    def write(self, scores, out, printed, order):
        if self.table == "ablation":
            write_ablation_table(scores, out, printed, order)
        else:
            write_table(self.table, scores, out, printed, order)


def paper(name, column, scores, table, where, *rest, **more):
    """A table whose columns are named by a key of the CSV, or by a function of its rows."""
    column = itemgetter(column) if isinstance(column, str) else column
    return Paper(partial(cells, name, column, *rest), scores, table, where, **more)


def accuracy(table, name, where):
    return paper(name, arrow, partial(of_accuracy, table), table, where)


def without_seconds(row):
    return not row["column"].startswith("Sec.")


TABLES = {
    "IV, V": Paper(
        tatoeba_cells, of_tatoeba, "tatoeba", "EMS v2, Table IV (v1: 4), Table V (v1: 6)"
    ),
    "VI": paper(
        *("ems-v2-table06-tatoeba-unseen", "language", partial(of_tatoeba, language="und")),
        *("tatoeba_unseen", "EMS v2, Table VI (v1: 5)"),
    ),
    "VII": paper(
        *("ems-v2-table07-flores", "pair", of_flores, "flores", "EMS v2, Table VII;"),
        own_columns=("Other (870)", "All (870)"),
    ),
    "IX": paper("ems-v2-table09-bucc", "pair", of_bucc, "bucc2018", "EMS v2, Table IX (v1: 8)"),
    "X": paper(
        *("ems-v2-table10-paracrawl", "language", of_paracrawl, "paracrawl"),
        "EMS v2, Table X (v1: 9)",
    ),
    "XI": accuracy("mldoc", "ems-v2-table11-mldoc", "EMS v2, Table XI (v1: 10)"),
    "XII": accuracy("cls", "ems-v2-table12-amazon-v1", "EMS v2, Table XII (v1: 11)"),
    "XIII": accuracy("marc", "ems-v2-table13-amazon-v2", "EMS v2, Table XIII (v1: 12)"),
    "XIV": paper(
        *("ems-v2-table14-ablation", "column", of_ablation, "ablation"),
        *("EMS v2, Table XIV (v1: 13)", without_seconds),
        every="EMS",
    ),
    "V-H": Paper(cosines, of_cosine, "wordorder", "EMS v2, section V-H"),
    "Lightweight 3": Paper(
        partial(lightweight, "lightweight-table03-mldoc", "MLDoc", arrow),
        *(partial(of_accuracy, "mldoc"), "mldoc_bilingual", "Lightweight, Tables 3 and 10"),
    ),
    "Lightweight 4": Paper(
        partial(lightweight, "lightweight-table04-xsr", "XSR", arrow),
        *(of_europarl, "europarlxsr", "Lightweight, Tables 4 and 10"),
    ),
    "monolingual 1": accuracy("xnli", "monolingual-table01-xnli", "the monolingual paper, Table 1"),
    "monolingual 2": accuracy("rcv2", "monolingual-table02-rcv2", "the monolingual paper, Table 2"),
}
