"""Scoring: encoders, the task a benchmark is given, and computations shared by protocols."""
