"""Fetch and read evaluation sets as published, for decontamination and for the benchmarks."""
