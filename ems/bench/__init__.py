"""Benchmarks: one file each, (encoder, data) -> one JSON of scores. Tables read nothing else."""
