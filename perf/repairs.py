"""Measure the repairs of `clean.repairs`: speed, what they change in right text, and made noise.

    python perf/repairs.py [--demo] [--shared FOLDER] [--bifixer PYTHON] [--out FILE]

- Speed: rows (pairs of lines) per CPU second of one core, on up to 40 rows of every pair file of
  OPUS in --shared, 5 % of the lines damaged, next to `ftfy.fix_text` on the same lines. --bifixer
  is the Python of an environment with bifixer 0.8.12, which is left out otherwise. A figure is the
  median of --repeats runs.
- Right text: the lines that change in FLORES-200, NTREX, TICO-19 and WMT24++, by kind.
  repairs_reviewed.tsv counts those that were read by a person and were damaged as published; all
  others count as wrong. The JSON has every changed line.
- Made noise: recall and precision by kind of damage (tests/made/noise.py).
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import ftfy
from measured import demo_lines, say
from text_steps import ROOT

from ems.base.files import read_table, write_json
from ems.base.texts import batched, read_lines
from ems.config.languages import load_languages, pair_name
from ems.corpora.moses import read_pairs
from ems.text.repairs.base import RepairReport, repairer

sys.path.append(str(ROOT / "tests"))
from made.noise import KINDS, Score, damaged, measure, total

NOISE, ROWS, SENTENCES = 0.05, 40, 200
DEMO_LANGUAGES = ("de", "ru", "zh", "ja", "ar")
Rows = list[tuple[str, str]]
Sets = Iterator[tuple[str, tuple[str, str], Rows]]


def demo_sets() -> Sets:
    for code in DEMO_LANGUAGES:
        pairs, english_first = demo_lines(code), pair_name("en", code).startswith("en-")
        yield "Demo", (code, "en"), [pair[::-1] for pair in pairs] if english_first else pairs


def opus_files(shared: Path, names: str = "*") -> Sets:
    """Yield all pairs of each file of corpora between languages of the table."""
    for path in sorted(shared.glob(f"opus/{names}/*/moses/*.txt.zip")):
        codes = tuple(path.name.partition(".")[0].split("-"))
        if {*codes} <= load_languages().keys():
            name = path.parts[-4]
            yield name, codes, read_pairs(path, name, "-".join(codes))


def right_sets(shared: Path) -> Sets:
    flores, languages = shared / "flores200/flores200_dataset", load_languages()
    for code, language in languages.items():
        rows = [
            pair
            for part in ("dev", "devtest")
            if (path := flores / part / f"{language.flores200}.{part}").exists()
            for pair in zip(
                read_lines(path), read_lines(flores / part / f"eng_Latn.{part}"), strict=True
            )
        ]
        if code != "en":
            yield "FLORES-200", (code, "en"), rows
    for name in ("NTREX", "tico-19"):
        yield from opus_files(shared, name)
    for path in sorted(shared.glob("wmt24pp/*.jsonl")):
        code = path.stem.split("-")[1].partition("_")[0]
        code = {"no": "nb", "fil": "tl"}.get(code, code)
        entries = map(json.loads, read_lines(path))
        rows = [(each["target"], each["source"]) for each in entries if not each["is_bad_source"]]
        if code in languages:
            yield "WMT24++", (code, "en"), rows


def noisy(rows: Rows, codes: tuple[str, str]) -> list[tuple[str, str, int]]:
    """Damage NOISE of the lines, each in one way."""
    draw = Random(f"{codes}")
    sides = [list(side) for side in zip(*rows, strict=True)]
    for side, code in zip(sides, codes, strict=True):
        for place in range(len(side)):
            if draw.random() < NOISE:
                kind = draw.choice([*KINDS])
                side[place] = damaged([side[place]], code, kind, 1, place)[0]
    return [(*pair, line) for line, pair in enumerate(zip(*sides, strict=True), start=1)]


def speed(sets: Sets, rows: int, repeats: int, bifixer: Path | None) -> dict[str, Any]:
    """Return rows per CPU second of each program."""
    work = [(codes, noisy(list(islice(own, rows)), codes)) for _, codes, own in sets]
    work = [(codes, batch) for codes, own in merged(work) for batch in batched(own, lambda _: 0)]
    count = sum(len(own) for _, own in work)
    characters = sum(len(first) + len(second) for _, own in work for first, second, _ in own)

    def ours() -> None:
        for codes, own in work:
            repairer("default", codes)(own, RepairReport())

    def by_ftfy() -> None:
        for _, own in work:
            for first, second, _ in own:
                ftfy.fix_text(first)
                ftfy.fix_text(second)

    ours()  # makes the tables
    result = {"rows": count, "characters_per_line": characters / count / 2}
    for name, run in (("ems", ours), ("ftfy", by_ftfy)):
        seconds = []
        for _ in range(repeats):
            before = time.process_time()
            run()
            seconds.append(time.process_time() - before)
        result[name] = count / statistics.median(seconds)
    if bifixer:
        result["bifixer"] = bifixer_rate(bifixer, work, repeats)
    return result


def merged(work: list[tuple[tuple[str, str], list]]) -> list[tuple[tuple[str, str], list]]:
    """Return the rows of each language pair together."""
    by_codes: dict[tuple[str, str], list] = {}
    for codes, own in work:
        by_codes.setdefault(codes, []).extend(own)
    return list(by_codes.items())


def bifixer_rate(python: Path, work: list, repeats: int) -> float:
    """Return rows per CPU second of bifixer as English and German, without those of its start."""
    rows = [row for _, own in work for row in own]
    with tempfile.TemporaryDirectory() as folder:

        def seconds(some: list) -> float:
            path = Path(folder, "rows.tsv")
            lines = ("\t".join(map(one_line, row[:2])) + "\n" for row in some)
            path.write_text("".join(lines), encoding="utf-8")
            words = [str(python), "-m", "bifixer.bifixer", "--scol", "1", "--tcol", "2", "-q"]
            words += ["--ignore_duplicates", "--ignore_segmentation", str(path), f"{path}.out"]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([*words, "en", "de"], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        whole, start = ([seconds(some) for _ in range(repeats)] for some in (rows, rows[:1]))
    return (len(rows) - 1) / (statistics.median(whole) - statistics.median(start))


def one_line(text: str) -> str:
    return " ".join(text.split())


def harmless(sets: Sets) -> dict[str, Any]:
    """Return the numbers of different lines and of changed ones, by set, kind and language."""
    columns = ("kinds", "set", "language")
    known = {
        tuple(map(row.get, columns)): int(row["lines"])
        for row in read_table(Path(__file__).with_name("repairs_reviewed.tsv"))
    }
    lines: dict[tuple[str, str], set[str]] = {}
    changes: dict[tuple[str, str, str, str], str] = {}
    for name, codes, own in sets:
        rows = [(*pair, line) for line, pair in enumerate(own, start=1)]
        repaired = repairer("default", codes)(rows, RepairReport())
        for side, code in enumerate(codes):
            lines.setdefault((name, code), set()).update(row[side] for row in rows)
            for old, new in zip(rows, repaired, strict=True):
                if old[side] != new[side]:
                    kinds = kinds_of(old[side], codes, side)
                    changes[name, code, kinds, old[side]] = new[side]
    by_kind = Counter((kinds, name, code) for name, code, kinds, _ in changes)
    other = sum(max(count - known.get(key, 0), 0) for key, count in by_kind.items())
    return {
        "lines": sum(map(len, lines.values())),
        "changed": len(changes),
        "not_reviewed": other,
        "by_kind": [[*key, count] for key, count in by_kind.most_common()],
        "changes": [[*key, new] for key, new in changes.items()],
    }


def kinds_of(text: str, codes: tuple[str, str], side: int) -> str:
    report = RepairReport()
    repairer("default", (codes[side],))([(text, 1)], report)
    return "+".join(name for name in report.changed if name != "legacy") or "bullets"


def noise(sets: Sets, rows: int) -> dict[str, Score]:
    scores: dict[str, list[Score]] = {kind: [] for kind in KINDS}
    for _, codes, own in sets:
        own = own[:rows]
        for kind in KINDS:
            scores[kind].append(measure(own, codes, kind)[0])
    return {kind: total(own) for kind, own in scores.items()}


def show(rates: dict[str, Any], right: dict[str, Any], made: dict[str, Score]) -> None:
    say(f"{rates['rows']:,} rows, {rates['characters_per_line']:.0f} characters per line")
    for name in ("ems", "ftfy", "bifixer"):
        if name in rates:
            say(f"{name:10}{rates[name]:12,.0f} rows/s{rates['ems'] / rates[name]:8.1f}")
        else:
            say(f"{name:10} not measured; name its Python with --bifixer")
    share = 100 * right["changed"] / right["lines"]
    left = 100 * right["not_reviewed"] / right["lines"]
    say(f"{right['lines']:,} right lines, {right['changed']:,} changed ({share:.3f} %)")
    say(f"{right['not_reviewed']:,} of them not known to be damaged ({left:.3f} %)")
    for kinds, name, code, count in right["by_kind"]:
        say(f"  {kinds:24}{name:12}{code:4}{count:6}")
    say(f"{'damage':20}{'lines':>8}{'recall':>8}{'precision':>10}")
    for kind, score in made.items():
        say(f"{kind:20}{score.damaged:8}{score.recall:8.2f}{score.precision:10.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--demo", action="store_true", help="300 pairs of five languages")
    parser.add_argument("--bifixer", type=Path, help="Python of an environment with bifixer")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/repairs.json")
    options = parser.parse_args()
    if not options.demo and not options.shared.is_dir():
        sys.exit(f"{options.shared} is not there; give --shared FOLDER, or --demo")
    shared = options.shared
    every = demo_sets() if options.demo else opus_files(shared)
    rates = speed(every, ROWS, options.repeats, options.bifixer)
    right = harmless(demo_sets() if options.demo else right_sets(shared))
    flores = ((name, codes, rows) for name, codes, rows in right_sets(shared) if name[:1] == "F")
    made = noise(demo_sets() if options.demo else flores, SENTENCES)
    show(rates, right, made)
    scores = {kind: vars(score) for kind, score in made.items()}
    write_json(options.out, {"speed": rates, "right": right, "noise": scores})
    recall = min(score.recall for score in made.values() if score.damaged)
    precision = min(score.precision for score in made.values() if score.damaged)
    unchanged = 100 - 100 * right["not_reviewed"] / right["lines"]
    say(
        f"rows_per_s={rates['ems']:.0f} vs_ftfy={rates['ems'] / rates['ftfy']:.1f} "
        f"unchanged_pct={unchanged:.3f} recall={recall:.2f} precision={precision:.2f}"
    )


if __name__ == "__main__":
    main()
