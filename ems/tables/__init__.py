"""Scores and reports -> the papers' tables (LaTeX, CSV, Markdown) and figures.

- `tatoeba`: EMS v2 Tables IV and V (languages trained on), Table VI (languages never seen)
- `flores`: EMS v2 Table VII; `xsim`: error rates on the same data; `case_study`: section V-H
- `ntrex`: the same measure on NTREX; `costs`: jobs, time and memory of each stage
- `documents`: EMS v2 Tables XI to XIII, Lightweight Table 3 and the monolingual paper's two
- `corpora`: EMS v2 Table I and what decontamination removed, section IV-B
- `heatmap`: P@1 between all languages
- `figures`: Table IV as bars; `pairs`: P@1 against training pairs; `curves`: learning curves
- `pdf.compile_pdf`: all tables as one PDF
- `printed`: the papers' printed numbers, as data; `papers`: which table of theirs is which of ours
"""
