"""The benchmarks: one folder each, discovered. Nothing else in the project has a list of them.

    __init__.py   the record `BENCHMARK` (ems.config.plugins) and its settings, light to import
    data.py       its files: which, where from (units.tsv), how they are read
    score.py      the protocol, `score(task)`, where none of `families` does it
    table.yaml    its tables and figures in words (ems.tables.declarations)
    table.py      `TABLES` and `FIGURES`; a table of accuracies is table.yaml's alone
    demo.py       data of its form for the demo, `made(material)`

`data.py` has functions of a language's code in the benchmark; all but the first two may be absent:

    file_names(code)                    files that are evaluated on
    read_sides(folder, code)            sentences that training must not hold
    other_names(code)                   the same files as another publisher names them
    units(code)                         downloads; absent: one for each language
    read_unit(folder, unit)             number of sentences of a fetched unit; raises if spoilt
    training_files(code, settings)      files that only training a classifier needs
    training_units(code)                their downloads
    read_part(folder, place, size)      file and documents of a part, for classification

A project's own benchmarks lie in its folder `extensions/benchmarks/`.
"""

from pathlib import Path

__path__.append(str(Path("extensions/benchmarks").absolute()))
