"""Laws of the rules' shell texts: a value is one word or several, whatever is in it."""

import re
from pathlib import Path

import pytest
from conftest import ROOT

RULES = sorted((ROOT / "rules").glob("*.smk"))
NUMBERS = {"threads", "resources.gpu"}  # need no quotes


def shell_texts(path: Path) -> list[str]:
    """The shell text of every rule of a file."""
    text = path.read_text()
    blocks = re.findall(r'^    shell:\n((?: {8}".*"\n)+)', text, re.MULTILINE)
    assert len(blocks) == len(re.findall(r"\bshell\b", text)), path
    return blocks


def test_the_rules_have_shell_texts_to_look_at() -> None:
    assert sum(len(shell_texts(path)) for path in RULES) > 15


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_every_value_in_a_shell_text_is_quoted(path: Path) -> None:
    fields = re.findall(r"{([^}]*)}", "".join(shell_texts(path)))
    assert [field for field in fields if not field.endswith(":q") and field not in NUMBERS] == []


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_a_source_that_begins_with_a_hyphen_is_no_flag(path: Path) -> None:
    for text in shell_texts(path):
        assert "--source {params" not in text
