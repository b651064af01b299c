"""Europarl of OPUS (https://www.statmt.org/europarl), in the same layout as ParaCrawl."""

from ems.benchmarks.paracrawl.data import count, file_names, read_language

__all__ = ["count", "file_names", "read_language"]
