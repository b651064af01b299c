r"""All tables of an experiment as one PDF: an article that `\input`s the bare tabulars as floats.

LaTeX shrinks a table that is larger than the page; a longer one continues in another float. It runs
in a temporary folder, without the user's latexmkrc, without shell escape, and with a fixed date.
"""

import os
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from ems.base.errors import EmsError, mistake
from ems.base.files import atomic_path, read_text, write_text
from ems.tables.table import escape, pages

PACKAGES = "latexmk texlive-latex-base texlive-latex-recommended lmodern"
TIMEOUT = 300  # seconds
ROWS = 64  # lines of a tabular that fill a page
LINES = 12  # of a log in a message


def compile_pdf(tables: list[Path], captions: dict[str, str], out: Path) -> None:
    """Typeset the tabulars `tables` in one PDF, in this order. `captions`: a table's file name
    without suffix -> plain text. Raises `EmsError` if LaTeX is not installed or fails (with the end
    of its log), or a table is missing.
    """
    check_latex()
    if not tables:
        raise EmsError("no tables were given for the PDF; name at least one .tex file")
    with TemporaryDirectory(prefix="ems-pdf-") as name:
        folder = Path(name)
        for name, text in latex_files(tables, captions).items():
            write_text(folder / name, text)
        _run_latexmk(folder, out)
        with atomic_path(out) as temporary:
            shutil.copyfile(folder / "main.pdf", temporary)


def latex_files(tables: list[Path], captions: dict[str, str]) -> dict[str, str]:
    """Return main.tex and its tables, table1.tex, table1-2.tex, ... (with notes under the last)."""
    head = files("ems.tables").joinpath("article.tex").read_text(encoding="utf-8")
    floats, contents = [head], {}
    for number, table in enumerate(tables, 1):
        caption, text = escape(captions.get(table.stem, table.stem)), read_text(table)
        notes = [line.removeprefix("% ") for line in text.splitlines() if line.startswith("% ")]
        parts = pages(text, ROWS)
        for at, part in enumerate(parts, 1):
            name = f"table{number}-{at}" if at > 1 else f"table{number}"
            contents[f"{name}.tex"] = part
            place = rf"\placetable[\ContinuedFloat]{{{name}}}{{{caption} (continued)}}"
            place = place if at > 1 else rf"\placetable{{{name}}}{{{caption}}}"
            under = escape(" ".join(notes)) if at == len(parts) else ""
            floats.append(f"{place}{{{under}}}\n")
    return {"main.tex": "".join([*floats, "\\end{document}\n"]), **contents}


def check_latex() -> None:
    """Raise `EmsError` that names the packages if LaTeX is not installed."""
    absent = [name for name in ("latexmk", "pdflatex") if shutil.which(name) is None]
    if absent:
        raise mistake("no LaTeX", absent=" and ".join(absent), packages=PACKAGES)


def _run_latexmk(folder: Path, out: Path) -> None:
    options = ["-norc", "-pdf", "-interaction=nonstopmode", "-halt-on-error"]
    command = ["latexmk", *options, "-pdflatex=pdflatex -no-shell-escape %O %S", "main.tex"]
    fixed = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1", "max_print_line": "1000"}
    try:
        quiet = {"capture_output": True, "stdin": subprocess.DEVNULL, "timeout": TIMEOUT}
        done = subprocess.run(command, cwd=folder, env={**os.environ, **fixed}, **quiet)
    except subprocess.TimeoutExpired:
        raise EmsError(f"{out}: LaTeX did not end within {TIMEOUT} s; look at the tables") from None
    if done.returncode:
        log = folder / "main.log"
        said = log.read_bytes() if log.is_file() else done.stdout + done.stderr
        lines = said.decode("utf-8", "replace").splitlines()
        first = next((at for at, line in enumerate(lines) if line.startswith("!")), len(lines))
        end = "\n".join(["", *(lines[first:][:LINES] or lines[-LINES:]), ""])
        raise mistake("LaTeX failed", out=out, status=done.returncode, end=end)
