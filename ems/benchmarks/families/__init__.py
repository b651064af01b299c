"""Protocols shared by several benchmarks; a benchmark's record names its family."""
