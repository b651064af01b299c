"""Scores and reports -> the papers' tables (LaTeX, CSV, Markdown) and figures.

- `tatoeba.write_tatoeba_table`: EMS v2 Tables IV and V, `figures.plot_tatoeba`: the same as bars
- `corpora.write_corpora_table`, `corpora.write_decontamination_table`: EMS v2 Table I, section IV-B
- `pdf.compile_pdf`: all tables as one PDF
- `printed`: the papers' printed numbers, as data
"""
