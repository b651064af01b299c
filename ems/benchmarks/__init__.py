"""The benchmarks: one folder each, found by name. No other module lists them.

    record.yaml   its record (ems.config.plugins); or `BENCHMARK` in __init__.py
    __init__.py   settings of its own, `Protocol` and `Probe`, light to import
    data.py       names and reads its files; units.tsv lists the downloads
    score.py      the protocol, `score(task)`, unless the record names one of `families`
    table.yaml    captions and report texts of its tables and figures (ems.tables.declarations)
    ablation.tsv  its columns of EMS v2 Table XIV, if it joins the ablation
    table.py      `TABLES` and `FIGURES`; a table of accuracies needs only table.yaml
    demo.py       data of the same form for the demo, `demo_files(material)`

The functions of `data.py` take the benchmark's code of a language; only the first two are required.
Names that are the same for all languages are a tuple instead of a function.

    file_names(code)                    files to evaluate on
    read_sides(folder, code)            sentences to remove from training data
    other_names(code)                   the names of the same files at another publisher
    units(code)                         downloads (default: one per language)
    read_unit(folder, unit)             number of sentences of a fetched unit; raises if damaged
    training_files(code, settings)      files that only training a classifier needs
    training_units(code)                downloads of these files
    read_part(folder, place, size)      file and documents of a part, for classification

Benchmarks of a project of your own lie in its folder `extensions/benchmarks/`.
"""

from pathlib import Path

__path__.append(str(Path("extensions/benchmarks").absolute()))
