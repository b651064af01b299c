"""Documents whose alignments are known, made of parallel lines: joined, split and left out."""

import random
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from ems.benchmarks.alignment.score import figures_of

PLACES = re.compile(r"[,;:،、，；。.]\s*|\s")  # where a line may be split
EDGE = 8  # characters from its ends
Span = tuple[tuple[int, ...], tuple[int, ...]]


class Made(NamedTuple):
    """Two documents, and the numbers of the lines that belong together, from 0."""

    source: list[str]
    target: list[str]
    gold: list[Span]


def made(
    pairs: Sequence[tuple[str, str]],
    seed: int,
    dropped: float = 0.05,
    kept: float = 0.5,
    spaces: tuple[str, str] = (" ", " "),
) -> Made:
    """Make documents of pairs of lines: a share `kept` of them stays, and of `dropped` one side
    goes; of the rest, half are joined on one side, two or three lines into one, half are split.
    """
    rng, source, target, gold, at = random.Random(seed), [], [], [], 0
    while at < len(pairs):
        size = rng.choice((2, 2, 2, 3))
        fate, side = rng.random(), rng.randrange(2)
        joins = fate >= (1 + kept) / 2
        own = pairs[at : at + size] if joins else pairs[at : at + 1]
        at += len(own)
        sides = [[pair[k] for pair in own] for k in (0, 1)]
        if rng.random() < dropped:
            sides[side] = []
        elif joins:
            sides[side] = [spaces[side].join(sides[side])]
        elif fate >= kept:
            sides[side] = _split(rng, sides[side][0], size)
        span = []
        for document, lines in zip((source, target), sides, strict=True):
            span.append(tuple(range(len(document), len(document) + len(lines))))
            document += lines
        gold.append((span[0], span[1]))
    return Made(source, target, gold)


def _split(rng: random.Random, line: str, parts: int) -> list[str]:
    places = [match.end() for match in PLACES.finditer(line)]
    places = [place for place in places if EDGE < place < len(line) - EDGE]
    if len(places) < parts - 1:
        places = list(range(EDGE, len(line) - EDGE))
    if len(places) < parts - 1:
        return [line]
    cuts = [0, *sorted(rng.sample(places, parts - 1)), len(line)]
    return [line[one:two].strip() or "." for one, two in pairwise(cuts)]


def f1(gold: Iterable[Span], found: Iterable[Span]) -> tuple[float, float]:
    """Return strict and lax F1 in percent, as the benchmark `alignment` does."""
    both = ([span for span in spans if all(span)] for spans in (found, gold))
    figures = figures_of(*([spans] for spans in both))
    return figures["strict F1"], figures["lax F1"]
