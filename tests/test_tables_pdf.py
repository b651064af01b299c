"""Laws of the LaTeX: nothing in a name is taken for a command, all tables make one PDF."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import needs
from tables_made import SEVEN, demo_report, write_cost, write_scores

from ems.errors import EmsError
from ems.tables.corpora import write_corpora_table, write_decontamination_table
from ems.tables.costs import write_costs_table
from ems.tables.latex import escape
from ems.tables.ntrex import write_ntrex_table
from ems.tables.pdf import PACKAGES, compile_pdf
from ems.tables.printed import load_models
from ems.tables.tatoeba import write_tatoeba_table, write_unseen_table

NASTY = r'*[x] <LASER & 100% #1 {a_b} ~^\ $x$ |"'


def test_escaping_leaves_no_character_that_latex_takes_for_itself():
    escaped = escape(NASTY + "\nnext")
    assert "\n" not in escaped
    assert escape("<LASER") == "$<$LASER"
    assert escape(">300k") == "$>$300k"
    assert escape("*[x]|") == r"{*}{[}x{]}\textbar{}"  # a row may begin with either
    assert escape("EMS - L_cntrs") == r"EMS - L\_cntrs"
    assert not re.search(r"(?<!\\)[&%#_]", escaped)


@pytest.fixture
def latex():
    needs(shutil.which("latexmk"), f"latexmk is missing; install {PACKAGES}")


def test_all_tables_compile_and_the_same_tables_give_the_same_pdf(tmp_path, latex):
    paths = [
        write_scores(tmp_path, name, dict.fromkeys(load_models()["EMS"].seen, 50.0 + step))
        for step, name in enumerate(("EMS", "named"))
    ]
    nasty = write_scores(tmp_path, "nasty", dict.fromkeys(SEVEN, 50.0), system=NASTY)
    report = demo_report(tmp_path / "decontamination.json")
    unseen = {"isl": "und", "yid": "und"}
    some = write_scores(tmp_path / "u", "EMS", dict.fromkeys(unseen, 9.0), languages=unseen)
    ntrex = write_scores(tmp_path, "EMS", {"de": 50.0}, benchmark="ntrex")
    write_cost(tmp_path / "costs", f"train/{NASTY.replace('/', '')}", "train")
    write_tatoeba_table(paths, tmp_path / "whole.tex", list(load_models()), None)
    write_tatoeba_table([nasty], tmp_path / "nasty.tex", ["EMS"], None)
    write_unseen_table([some], tmp_path / "unseen.tex", ["EMS"])
    write_ntrex_table([ntrex], tmp_path / "ntrex.tex")
    write_corpora_table(report, tmp_path / "corpora.tex")
    write_decontamination_table(report, tmp_path / "decontamination.tex")
    write_costs_table(tmp_path / "costs", tmp_path / "costs.tex")
    tables = sorted(tmp_path.glob("*.tex"))
    assert len(tables) == 7
    made = []
    for name in ("one.pdf", "two.pdf"):
        compile_pdf(tables, {"nasty": NASTY}, tmp_path / name)
        made.append((tmp_path / name).read_bytes())
    assert made[0].startswith(b"%PDF")
    assert made[0] == made[1]


def test_a_latex_error_is_shown_with_the_line_of_the_log_that_tells_it(tmp_path, latex):
    table = tmp_path / "broken.tex"
    table.write_text("\\begin{tabular}{l}\n\\nosuchcommand \\\\\n\\end{tabular}\n")
    with pytest.raises(EmsError, match=r"! Undefined control sequence[\s\S]*nosuchcommand"):
        compile_pdf([table], {}, tmp_path / "t.pdf")
    assert not (tmp_path / "t.pdf").exists()


def test_without_latex_the_error_names_the_packages(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmsError, match=PACKAGES):
        compile_pdf([tmp_path / "t.tex"], {}, tmp_path / "t.pdf")


def test_nothing_to_set_is_an_error(tmp_path, latex):
    with pytest.raises(EmsError, match="no tables"):
        compile_pdf([], {}, tmp_path / "t.pdf")
    with pytest.raises(EmsError, match="no such file"):
        compile_pdf([Path(tmp_path / "t.tex")], {}, tmp_path / "t.pdf")
