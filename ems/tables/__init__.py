"""Scores and reports -> the papers' tables (LaTeX, CSV, Markdown) and figures.

- `registry`: every table and figure, what each is made of and what makes it
- `scores`: reads score files that may share a table
- `engine`: the one engine for tables of systems x columns; benchmarks declare them in their folders
- `declarations`: what several benchmarks declare alike; `study`: several benchmarks in one table
- `table`: one table and its three writers; `pdf`: all tables as one PDF
- `corpora`, `models`, `logs`: tables of the training text, of the models, of what jobs log
- `compare`: two systems side by side
- `figures`, `curves`: figures of scores and of training, on the `canvas` that they share
- `printed`: the papers' printed numbers, as data
"""
