"""The code of an exported folder whose model is none of sentence-transformers' own kinds.

It is this project's own: each file of FILES is copied, and what it imports from another of them is
imported from beside it. The code that is tested here is thus the code that runs there.
"""

import re
from pathlib import Path

from ems.base.files import write_text
from ems.base.provenance import source_root

MODULE = "ngram_embedding.NgramEmbedding"  # in modules.json
FILES = ("export/ngram_embedding.py", "model/table.py")
OWN_IMPORT = re.compile(r"^from ems\.\w+\.(\w+) import", re.MULTILINE)


def write_code(folder: Path) -> None:
    """Write the files."""
    for name in FILES:
        source = source_root() / name
        text = OWN_IMPORT.sub(r"from .\1 import", source.read_text(encoding="utf-8"))
        write_text(folder / source.name, text)


def code_of(folder: Path) -> list[str]:
    """Return the names of the files of a folder that `trust_remote_code=True` may run."""
    return sorted(path.name for path in folder.glob("*.py"))
