"""Scores and reports -> the papers' tables (LaTeX, CSV, Markdown) and figures."""
