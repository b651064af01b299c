"""Measure how many lines per second of one core each key of `decontaminate.key` takes.

    python perf/text_keys.py [--demo] [--shared FOLDER] [--out FILE]

The lines are the foreign sides of up to 5,000 pairs per language of tico-19, NTREX and Tatoeba. A
figure is the median of `--repeats` runs, in CPU seconds, after one that makes the tables.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

from measured import demo_lines, say
from text_steps import LANGUAGES, ROOT, real_lines

from ems.base.files import write_json
from ems.base.texts import batched
from ems.text.keys import KEYS
from ems.text.normalise import tidy_lines

LINES = 5000  # of a language


def lines_of(shared: Path | None) -> list[str]:
    """Return the sides that are not English."""
    codes = LANGUAGES if shared else ["de", "zh", "ja"]
    pairs = [real_lines(shared, code, LINES) if shared else demo_lines(code) for code in codes]
    sides = [1 if code > "en" or not shared else 0 for code in codes]
    return tidy_lines([row[side] for own, side in zip(pairs, sides, strict=True) for row in own])


def rate(name: str, lines: list[str], repeats: int) -> float:
    """Return lines per second, in batches of the size that `ems prepare` uses."""
    seconds = []
    for _ in range(repeats + 1):
        before = time.process_time()
        for batch in batched(lines, len):
            KEYS[name](batch)
        seconds.append(time.process_time() - before)
    return len(lines) / statistics.median(seconds[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--demo", action="store_true", help="300 lines each of the demo corpus")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/text_keys.json")
    options = parser.parse_args()
    if not options.demo and not options.shared.is_dir():
        sys.exit(f"{options.shared} is not there; give --shared FOLDER, or --demo")
    lines = lines_of(None if options.demo else options.shared)
    rates = {name: round(rate(name, lines, options.repeats)) for name in KEYS}
    write_json(options.out, {"lines": len(lines), **rates})
    say(" ".join(f"{name}={value}" for name, value in rates.items()))


if __name__ == "__main__":
    main()
