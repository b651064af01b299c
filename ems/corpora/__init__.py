"""Parallel corpora: the OPUS catalogue, the fetcher, Moses zips, and the embedded demo corpus."""
