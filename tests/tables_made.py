"""Score files, reports and loss logs for the tests of tables and figures, and readers of tables."""

import csv
import json

SHA = "d" * 64
SEVEN = ["cmn", "deu", "fra", "ita", "jpn", "rus", "spa"]
MUSE = {*SEVEN, "ara", "kor", "nld", "pol", "por", "tha", "tur"}
SUFFIXES = (".tex", ".md", ".csv")


def write_scores(folder, system, values, /, languages=None, **changes):
    """A score file; `values`: code -> P@1 of both directions, or a pair of numbers; `languages`:
    code -> the experiment's language, which is the code itself unless given."""
    pairs = {code: v if isinstance(v, tuple) else (v, v) for code, v in values.items()}
    data = {
        "benchmark": "tatoeba",
        "version": "v1",
        "system": system,
        "system_hash": "ab12",
        "data_sha256": SHA,
        "metric": "P@1",
        "directions": {
            code: {
                "language": (languages or {}).get(code, code),
                "sentences": 1000,
                "to_english": to,
                "from_english": back,
            }
            for code, (to, back) in pairs.items()
        },
    }
    data.update(changes)
    path = folder / system / f"{data['benchmark']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def csv_rows(path):
    """Rows of a written table by their label."""
    with open(path.with_suffix(".csv"), encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    return {next(iter(row.values())): row for row in rows}


def tex_line(path, label, block=0):
    """The cells of the row `label` in the given block of a .tex table."""
    lines = path.with_suffix(".tex").read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line.startswith(label + " &")]
    return [cell.strip() for cell in found[block].removesuffix(r"\\").split("&")][1:]


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
    found = {"tatoeba": {"en": 100, "fr": 90, "pairs": 120}, "flores200": {"en": 1, "pairs": 1}}
    german = {"tatoeba": {"en": 7, "de": 8, "pairs": 9}}
    entries = [
        ("Demo", "train", "en-fr", 18120, {"empty": 0, "evaluation": 120, "cap": 0}, found),
        ("TED", "train", "en-fr", 1000, {"empty": 5, "evaluation": 0}, {}),
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
