"""Scores and reports -> the papers' tables (LaTeX, CSV, Markdown) and figures.

- `engine`: the one writer of tables of systems x columns; benchmarks declare them in their folders
- `columns`, `accuracy`, `retrieval`: what such declarations share
- `registry`: every table and figure by name; `words`: what captions say of those of no benchmark
- `scores`: score files that may share a table; `compare`: two systems side by side
- `corpora`: EMS v2 Table I and what decontamination removed, section IV-B
- `costs`: jobs, time and memory of each stage
- `heatmap`: P@1 between all languages
- `figures`: Table IV as bars; `pairs`: P@1 against training pairs; `curves`: learning curves
- `pdf.compile_pdf`: all tables as one PDF
- `printed`: the papers' printed numbers, as data
"""
