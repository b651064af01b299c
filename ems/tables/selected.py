"""Copies of an experiment's tables and figures that say whose they are.

`results/tables` and `results/figures` hold those of the experiment that was selected last. A .tex
begins with a comment, a .md with a line, and a .svg ends with a comment. A .csv and a .png have no
place for one: they are the same bytes, and the files beside them say it.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import atomic_path, reading_text, write_text

MARKED: dict[str, Callable[[str, str], str]] = {  # suffix -> the text with a line that says whose
    ".tex": lambda text, line: f"% {line}\n{text}",
    ".md": lambda text, line: f"{line}\n\n{text}",
    ".svg": lambda text, line: f"{text}<!-- {line.replace('--', '- -')} -->\n",
}


def write_selected(sources: list[Path], out: Path, experiment: str) -> None:
    """Write a copy of each file into the folder `out`, under its name, marked as the experiment's.

    Raises `Damaged` for a file that is missing, or is not UTF-8 where it gets a mark, and for one
    that lies in `out` `EmsError`.
    """
    for source in sources:
        if source.parent.resolve() == out.resolve():
            raise EmsError(f"--out {out}: {source} lies in it; choose another folder")
    for source in sources:
        if mark := MARKED.get(source.suffix):
            with reading_text(source) as reader:
                text = reader.read()
            line = f"Experiment {experiment}: a copy of {source.as_posix()}"
            write_text(out / source.name, mark(text, line))
        else:
            with atomic_path(out / source.name) as temporary:
                shutil.copyfile(source, temporary)
