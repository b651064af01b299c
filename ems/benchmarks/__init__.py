"""The benchmarks: one folder each, discovered. Nothing else in the project has a list of them.

    __init__.py   the record `BENCHMARK` (ems.config.plugins) and its settings, light to import
    data.py       its files: which, where from (units.tsv), how they are read
    score.py      the protocol, `score(task)`, where none of `families` does it
    table.py      its tables, `TABLES`
    demo.py       data of its form for the demo, `made(material)`

A project's own benchmarks lie in its folder `extensions/benchmarks/`.
"""

from pathlib import Path

__path__.append(str(Path("extensions/benchmarks").absolute()))
