"""Readers of the benchmarks' published formats; decontamination and the benchmarks use the same."""
