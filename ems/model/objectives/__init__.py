"""The training objectives, one file each (EMS v2 section III-B to III-D), and what they share.
Yours is a file in `extensions/objectives/` of the project (docs/extend.md). Settings are in
ems/config/objectives.py, since every command reads them and PyTorch takes seconds to import.
"""

from pathlib import Path

EXTENSIONS = Path("extensions/objectives")  # below the project's folder
__path__.append(str(EXTENSIONS.absolute()))
