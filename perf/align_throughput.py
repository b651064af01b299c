"""Measure `ems align` on made documents, against Vecalign's program with the same encoder.

    python perf/align_throughput.py [--demo] [--no-peer] [--lines SOURCE TARGET] [--out FILE]

One pair of documents of 10,000 sentences, and 1,000 pairs of 50, are made of parallel lines: half
of them joined or split, a tenth without a partner. The peer is the package sentalign 0.3.0, which
has Vecalign's compiled dynamic programming; vecalign itself, Bleualign and hunalign are on neither
PyPI nor Debian. Both encode with the encoder that comes with EMS, which is counted. Gale and Church
(1993), lengths alone, is our search with equal vectors. With --languages, only strict F1 by
language is printed.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from align_made import Made, Span, f1, made
from measured import demo_lines, figures, require_peer, say
from pairs_made import ROOT

from ems.base.files import write_json
from ems.base.texts import read_lines
from ems.config.languages import load_languages
from ems.use.align import Side, align, align_sides
from ems.use.encoder import Encoder

SIZES = {"long": (1, 10_000), "many": (1_000, 50)}  # pairs of documents, sentences of each
DEMO = {"long": (1, 300), "many": (4, 20)}
UNSPACED = ("ja", "th", "zh")
Aligner = Callable[[Made], list[Span]]


def ours(codes: tuple[str, str]) -> Aligner:
    encoder = Encoder()
    return lambda text: [
        (tuple(one), tuple(other))
        for one, other, _ in align(encoder, text.source, text.target, *codes)
    ]


def by_lengths(codes: tuple[str, str]) -> Aligner:
    def aligned(text: Made) -> list[Span]:
        sides = [
            Side.of_windows(lines, lambda texts: np.ones((len(texts), 1), np.float32))
            for lines in text[:2]
        ]
        return [(tuple(one), tuple(other)) for one, other, _ in align_sides(*sides)]

    return aligned


def by_vecalign(codes: tuple[str, str]) -> Aligner:
    from sentalign import sentalign

    encoder = Encoder()

    class Vectors:
        """The interface that sentalign expects; its texts are of both languages."""

        def encode(self, texts: list[str], **options: Any) -> np.ndarray:
            return encoder.encode(list(texts), normalise=True)

    def aligned(text: Made) -> list[Span]:
        result = sentalign(text.source, text.target, encoder=Vectors())
        return [(tuple(own.src_indices), tuple(own.tgt_indices)) for own in result.alignments]

    return aligned


RUNS = {"ours": ours, "vecalign": by_vecalign, "lengths": by_lengths}


def texts_of(name: str, options: argparse.Namespace) -> list[Made]:
    """Make the documents of a size from the parallel lines, which are used again and again."""
    sides = [read_lines(path) for path in options.lines] if options.lines else None
    pairs = list(zip(*sides, strict=True)) if sides else demo_lines("de")
    documents, count = (DEMO if options.demo else SIZES)[name]
    rng, texts = np.random.default_rng(1), []
    for number in range(documents):
        start = int(rng.integers(len(pairs)))
        rows = [pairs[(start + at) % len(pairs)] for at in range(count)]
        texts.append(made(rows, number, dropped=0.1))
    return texts


def run(name: str, size: str, options: argparse.Namespace) -> dict[str, float]:
    """Align the documents of a size; return the seconds and the mean F1."""
    texts, aligner = texts_of(size, options), RUNS[name](tuple(options.codes))
    aligner(made([("Hallo.", "Hello.")] * 4, 0))  # warm-up
    started = time.perf_counter()
    found = [aligner(text) for text in texts]
    seconds = time.perf_counter() - started
    scores = [f1(text.gold, own) for text, own in zip(texts, found, strict=True)]
    strict, lax = np.mean(scores, 0)
    return {"seconds": seconds, "strict": float(strict), "lax": float(lax)}


def by_language(folder: Path) -> None:
    """Print strict F1 of FLORES-200's devtest, English with each language of the folder."""
    encoder = Encoder()
    names = {code: language.flores200 for code, language in load_languages().items()}
    english = read_lines(folder / "eng_Latn.devtest")
    say("language   strict      lax   lengths")
    for code in encoder.languages:
        path = folder / f"{names.get(code)}.devtest"
        if code == "en" or not path.exists():
            continue
        spaces = (" ", "" if code in UNSPACED else " ")
        text = made(list(zip(english, read_lines(path), strict=True)), 1, spaces=spaces)
        (strict, lax), (lengths, _) = (
            f1(text.gold, RUNS[name](("en", code))(text)) for name in ("ours", "lengths")
        )
        say(f"{code:8} {strict:8.1f} {lax:8.1f} {lengths:9.1f}")


def measure(name: str, size: str, options: argparse.Namespace) -> dict[str, float]:
    """Return the figures of one run in a fresh process, with its peak of RssAnon."""
    command = [sys.executable, __file__]
    command += ["--inside", name, size, "--codes", *options.codes, *["--demo"] * options.demo]
    command += ["--lines", *map(str, options.lines)] if options.lines else []
    results, anon_mb = figures(command, name)
    row = results | {"rss_anon_mb": anon_mb}
    time, memory = f"{row['seconds']:10,.1f} s", f"{row['rss_anon_mb']:8,.0f} MB"
    say(f"{size:5} {name:9}{time}{memory}{row['strict']:8.1f} strict{row['lax']:7.1f} lax")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--demo", action="store_true", help="a little, anywhere")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/align_throughput.json")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="leave out sentalign")
    parser.add_argument("--lines", type=Path, nargs=2, help="parallel lines (default: the demo's)")
    parser.add_argument("--codes", nargs=2, default=["en", "de"], help="their languages")
    parser.add_argument("--languages", type=Path, help="folder devtest of FLORES-200")
    parser.add_argument("--threads", type=int, default=1, help="of matrix products")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        say(json.dumps(run(*options.inside, options)))
        return
    if options.languages:
        by_language(options.languages)
        return
    if options.peer:
        require_peer(["sentalign"], "bench", "sentalign")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # of each run
    names = [name for name in RUNS if options.peer or name != "vecalign"]
    rows = {
        size: {who: [measure(who, size, options) for _ in range(options.repeats)] for who in names}
        for size in SIZES
    }
    best = {
        size: {who: min(own, key=lambda row: row["seconds"]) for who, own in each.items()}
        for size, each in rows.items()
    }
    last = {f"{size}_s": each["ours"]["seconds"] for size, each in best.items()}
    last |= {f"{size}_mb": each["ours"]["rss_anon_mb"] for size, each in best.items()}
    if options.peer:
        for size, each in best.items():
            last[f"{size}_vs_vecalign"] = each["vecalign"]["seconds"] / each["ours"]["seconds"]
    write_json(options.out, {"numpy": np.__version__, "measured": best, **last})
    say(" ".join(f"{name}={value:.2f}" for name, value in last.items()))


if __name__ == "__main__":
    main()
