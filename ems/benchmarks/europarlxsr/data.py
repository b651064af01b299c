"""Europarl of OPUS (https://www.statmt.org/europarl), read as ParaCrawl is."""

from ems.benchmarks.paracrawl.data import count, file_names, read_language

__all__ = ["count", "file_names", "read_language"]
