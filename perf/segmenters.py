"""Compare two segmenters, language by language: lines that differ, and how much faster one is.

    python perf/segmenters.py [--demo] [--names moses moses-fast] [--shared FOLDER] [--out FILE]

Both run like the text path (`Segmenting`, one worker), from a file of lines to a file of
lower-case words, and load again for each run. The figure is CPU seconds of this process and of its
child processes, the median of `--repeats` alternating runs.

- Languages: all whose default is the first segmenter (60 of EMS's 62 for Moses).
- Lines: tico-19, NTREX and Tatoeba in this order, without repetitions, up to `--lines`.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from measured import demo_lines, require_segmenters, say
from text_steps import ROOT, real_lines
from text_throughput import cpu_seconds

from ems.base.files import write_json
from ems.base.texts import read_lines
from ems.config.languages import load_languages, pair_name
from ems.text.bulk import Segmenting
from ems.text.normalise import tidy_lines
from ems.text.segmenters.base import defaults, segmenter

DEMO_LANGUAGES = ("de", "en")


def lines_of(shared: Path | None, code: str, count: int) -> list[str]:
    """Return up to `count` lines of a language; English comes from its pairs with German."""
    other = "de" if code == "en" else code
    pairs = real_lines(shared, other, count) if shared else demo_lines(other)
    side = pair_name("en", other).split("-").index(code)
    return list(dict.fromkeys(filter(None, tidy_lines([pair[side] for pair in pairs]))))


def compare(folder: Path, code: str, names: list[str], repeats: int) -> dict[str, Any]:
    """Return the lines of a language, the differing ones, CPU seconds by segmenter, the ratio."""
    source, outs = folder / f"{code}.tsv", [folder / name / f"{code}.tsv" for name in names]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(repeats):
        for name, out in zip(names, outs, strict=True):
            out.parent.mkdir(exist_ok=True)
            segmenter.cache_clear()
            before = cpu_seconds()
            segmenting = Segmenting((code,), (name,), folder / "state")
            segmenting.write(out, [source.read_text(encoding="utf-8")])
            segmenting.finish()
            seconds[name].append(cpu_seconds() - before)
    first, second = (read_lines(out) for out in outs)
    differ = sum(one != other for one, other in zip(first, second, strict=True))
    medians = {name: statistics.median(runs) for name, runs in seconds.items()}
    ratio = medians[names[0]] / medians[names[1]]
    return {"lines": len(first), "differ": differ, "cpu_s": medians, "ratio": ratio}


def summary(names: list[str], rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    total = {name: sum(row["cpu_s"][name] for row in rows.values()) for name in names}
    lines = sum(row["lines"] for row in rows.values())
    return {
        "names": names,
        "languages": rows,
        "lines": lines,
        "lines_per_s_core": {name: lines / total[name] for name in names},
        "differ": sum(row["differ"] for row in rows.values()),
        "worst_per_1000": max(1000 * row["differ"] / row["lines"] for row in rows.values()),
        "ratio": total[names[0]] / total[names[1]],
        "least_ratio": min(row["ratio"] for row in rows.values()),
    }


def show(results: dict[str, Any]) -> None:
    for name, rate in results["lines_per_s_core"].items():
        say(f"{name}: {rate:,.0f} lines per second of one core, all languages")
    say(
        f"languages={len(results['languages'])} lines={results['lines']} "
        f"differ={results['differ']} worst_per_1000={results['worst_per_1000']:.2f} "
        f"ratio={results['ratio']:.2f} least_ratio={results['least_ratio']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--demo", action="store_true", help="300 lines each of the demo corpus")
    parser.add_argument("--names", nargs=2, default=["moses", "moses-fast"], metavar="NAME")
    parser.add_argument("--lines", type=int, default=40_000, help="of a language, at most")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/segmenters.json")
    options = parser.parse_args()
    if not options.demo and not options.shared.is_dir():
        sys.exit(f"{options.shared} is not there; give --shared FOLDER, or --demo")
    require_segmenters(options.names)
    default = defaults(load_languages())
    codes = [code for code, name in default.items() if name == options.names[0]]
    rows = {}
    say(f"{'':8}{'lines':>8}{'differ':>8}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.demo:
            codes = list(DEMO_LANGUAGES)
        shared = None if options.demo else options.shared
        for code in codes:
            lines = lines_of(shared, code, options.lines)
            if lines:
                text = "".join(f"{line}\t{at}\n" for at, line in enumerate(lines, start=1))
                (folder / f"{code}.tsv").write_text(text, encoding="utf-8")
                rows[code] = row = compare(folder, code, options.names, options.repeats)
                say(f"{code:8}{row['lines']:8,}{row['differ']:8,}{row['ratio']:8.2f}")
    results = summary(options.names, rows)
    write_json(options.out, results)
    show(results)


if __name__ == "__main__":
    main()
