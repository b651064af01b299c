"""Corpora and evaluation sets: what exists, downloads, readers, and the embedded demo corpus."""
