"""Whole files, errors, progress, costs, hashes of source: all that knows nothing of sentences."""
