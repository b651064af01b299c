"""Tables, reports and loss logs for the tests of tables and figures, and readers of tables."""

import csv
import json
import re
import struct

import numpy as np
from safetensors.numpy import save_file

from ems.config.plugins import benchmarks
from ems.tables.declarations import tables_of
from ems.tables.engine import Declaration, write_systems

EMBEDDING, LAYER, HEAD = (10, 4), (4, 3), (2, 5)  # shapes of a model's weights
SEVEN = ["cmn", "deu", "fra", "ita", "jpn", "rus", "spa"]
SUFFIXES = (".tex", ".md", ".csv")
MADE = {  # table -> its declaration, or what writes it
    table: made for name in benchmarks() for table, made in tables_of(name).items()
}
DECLARED = {table: made for table, made in MADE.items() if isinstance(made, Declaration)}


def write_table(name, scores, out, printed=(), order=None, families=None):
    """Write a declared table of systems x columns; its rows by their label."""
    write_systems(DECLARED[name], scores, out, list(printed), order or (), families)
    return csv_rows(out)


def csv_rows(path):
    """Rows of a written table by their label."""
    with open(path.with_suffix(".csv"), encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    return {next(iter(row.values())): row for row in rows}


def tex_line(path, label, block=0):
    """The cells of the row `label` in the given block of a .tex table."""
    lines = path.with_suffix(".tex").read_text(encoding="utf-8").splitlines()
    matching = [line for line in lines if line.startswith(label + " &")]
    return [cell.strip() for cell in matching[block].removesuffix(r"\\").split("&")][1:]


def write_report(path, entries, against=("tatoeba",)):
    """A decontamination report; entries: (corpus, role, pair, read, removed, by_benchmark)."""
    corpora = [
        {
            "corpus": corpus,
            "version": "v1",
            "role": role,
            "pair": pair,
            "read": read,
            "removed": removed,
            "by_benchmark": by_benchmark,
            "kept": read - sum(removed.values()),
        }
        for corpus, role, pair, read, removed, by_benchmark in entries
    ]
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
    """A .jsonl file of `rows`; a row that is text already stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_cost(folder, name, stage, seconds=1.0, cpu=1.0, memory=100.0, /, **changes):
    """The costs of one job, in costs/`name`.json; a value of None takes the key away."""
    data = {"stage": stage, "seconds": seconds, "cpu_seconds": cpu, "max_rss_mb": memory}
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in {**data, **changes}.items() if value is not None}
    path.write_text(json.dumps(kept), encoding="utf-8")
    return path


def times_file(folder, system, steps, seconds):
    rows = [{"step": steps // 2, "seconds": seconds / 3}, {"step": steps, "seconds": seconds}]
    return write_lines(folder / f"{system}.times.jsonl", rows)


def write_model(folder, name, languages, share=1):
    """A model folder as training leaves it, as far as the table reads it."""
    place = folder / "models" / name
    place.mkdir(parents=True)
    encoder = {"tokens.weight": np.zeros(EMBEDDING, "f4"), "layer": np.zeros(LAYER, "f4")}
    save_file(encoder, place / "model.safetensors")
    save_file({"head": np.zeros(HEAD, "f4")}, place / "heads.safetensors")
    training = {"system": {"train": {"corpus_share": share}}}
    description = {"name": name, "languages": languages, "training": training}
    (place / "model.json").write_text(json.dumps(description))
    return place / "model.json"


def texts(path):
    """What a .svg says, in order: matplotlib draws letters as paths and comments each text."""
    return re.findall(r"<!-- (.*?) -->", path.with_suffix(".svg").read_text(encoding="utf-8"))


def pixels(path):
    """Width and height of the .png."""
    return struct.unpack(">II", path.with_suffix(".png").read_bytes()[16:24])
