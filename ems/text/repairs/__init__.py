"""The repairs of noisy text, one file each, named by `clean.repairs`.

To add one, write a file here or in the project's folder `extensions/repairs/`: a table of regular
expressions (as quotes.tsv; `ems.text.repairs.base.rules` has the columns), or a module with a
function `repair(language)` that returns an `ems.text.repairs.base.Repair`, None for languages that
need none.
"""

from pathlib import Path

__path__.append(str(Path("extensions/repairs").absolute()))
