"""Scoring: encoders, what a benchmark is given, and the computations that protocols share."""
