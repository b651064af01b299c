"""LaTeX: no character of a name is a command, and all tables make one PDF."""

import re
import shutil

import pytest
from conftest import needs
from made import golden

from ems.base.errors import EmsError
from ems.base.files import write_text
from ems.tables.pdf import PACKAGES, ROWS, compile_pdf, latex_files
from ems.tables.table import BETWEEN_BLOCKS, Block, Table, escape, pages, tabular

NASTY = r'*[x] <LASER & 100% #1 {a_b} ~^\ $x$ |"'


def test_special_characters_of_latex_are_escaped():
    escaped = escape(NASTY + "\nnext")
    assert "\n" not in escaped
    assert escape("<LASER >300k") == "$<$LASER $>$300k"
    assert escape("*[x]|") == r"{*}{[}x{]}\textbar{}"  # a row may begin with either
    assert escape("EMS - L_cntrs") == r"EMS - L\_cntrs"
    assert not re.search(r"(?<!\\)[&%#_]", escaped)


@pytest.fixture
def latex():
    needs(shutil.which("latexmk"), f"latexmk is missing; install {PACKAGES}")


@pytest.mark.slow
def test_all_golden_tables_compile_and_the_same_tables_give_the_same_pdf(tmp_path, latex):
    nasty = Table(["Model", NASTY], [[NASTY, 5.0], ["*", 6.0]], notes=[NASTY], footnote=NASTY)
    write_text(tmp_path / "nasty.tex", tabular(nasty))
    for path in (golden.FOLDER / "tables").glob("*.md"):
        for text in re.findall("```latex\n(.*)```", path.read_text(encoding="utf-8"), re.DOTALL):
            write_text(tmp_path / f"{path.stem}.tex", text)
    tables, made = sorted(tmp_path.glob("*.tex")), []
    assert len(tables) > 25
    for name in ("one.pdf", "two.pdf"):
        compile_pdf(tables, {"nasty": NASTY}, tmp_path / name)
        made.append((tmp_path / name).read_bytes())
    assert made[0].startswith(b"%PDF")
    assert made[0] == made[1]


def test_a_table_too_long_for_a_page_is_cut_between_its_blocks(tmp_path, latex):
    """Four blocks of 28 rows, two to a page; the comments come first, the footnote last."""
    rows = [[f"row{at}", *(float(column) for column in range(8))] for at in range(28)]
    columns = ["Model", *(f"c{column}" for column in range(8))]
    blocks = [Block([f"c{at}", f"c{at + 1}"]) for at in range(0, 8, 2)]
    table = Table(columns, rows, blocks, dagger={(0, "c0")}, notes=["A note."], footnote="a dagger")
    written = tabular(table)
    parts = pages(written, ROWS)
    assert all(len(part.splitlines()) <= ROWS + 8 for part in parts)
    counts = {text: [part.count(text) for part in parts] for text in ("A note.", "a dagger")}
    assert counts == {"A note.": [1, 0], "a dagger": [0, 1]}
    assert [part.count(BETWEEN_BLOCKS) for part in parts] == [1, 1]
    body = [line for line in written.splitlines() if line.startswith("row") or "c0" in line]
    assert [line for part in parts for line in part.splitlines() if line in body] == body
    assert pages(written, 10_000) == [written]
    write_text(tmp_path / "long.tex", written)
    article = latex_files([tmp_path / "long.tex"], {"long": "Long."})["main.tex"]
    assert r"\placetable{table1}{Long.}{}" in article
    assert r"\placetable[\ContinuedFloat]{table1-2}{Long. (continued)}{A note.}" in article
    compile_pdf([tmp_path / "long.tex"], {}, tmp_path / "t.pdf")
    assert (tmp_path / "t.pdf").read_bytes().startswith(b"%PDF")


def test_tables_that_latex_cannot_typeset_are_errors_with_the_reason(tmp_path, latex, monkeypatch):
    table = tmp_path / "broken.tex"
    table.write_text("\\begin{tabular}{l}\n\\nosuchcommand \\\\\n\\end{tabular}\n")
    log = r"! Undefined control sequence[\s\S]*nosuchcommand"
    missing = tmp_path / "t.tex"
    for given, message in (([table], log), ([], "no tables"), ([missing], "no such file")):
        with pytest.raises(EmsError, match=message):
            compile_pdf(given, {}, tmp_path / "t.pdf")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmsError, match=PACKAGES):
        compile_pdf([table], {}, tmp_path / "t.pdf")
    assert not (tmp_path / "t.pdf").exists()
