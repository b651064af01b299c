"""Pairs of your own text: finding the translation among all of them, in both directions."""

from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(
    title="Own text",
    status="yours",
    licence="that of your text",
    obtain="`ems init --files` writes one; or write pairs.tsv, a pair per line: two language "
    "codes, then both sentences, separated by tabs",
    between="",
)
