"""FLORES+ is scored as FLORES-200: P@1 between every two languages, by cosine."""

from ems.benchmarks.flores200.score import score as score
