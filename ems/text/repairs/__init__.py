"""The repairs of noisy text, one file each, named by `clean.repairs`.

To add one, write a file here or in the project's folder `extensions/repairs/`: a table of regular
expressions (as quotes.tsv; `ems.text.repairs.base.rules` has the columns), or a module with a
function `repair(language)` that returns a list of `ems.text.repairs.base.Repair`, maybe empty.
"""

from pathlib import Path

__path__.append(str(Path("extensions/repairs").absolute()))
