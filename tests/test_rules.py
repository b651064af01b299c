"""Laws of the rules: their parts stand in one order, and a value in a shell text is quoted."""

import re
from pathlib import Path

import pytest
from conftest import ROOT

RULES = sorted((ROOT / "rules").glob("*.smk"))
NUMBERS = {"threads", "resources.processes", "resources.nodes"}  # need no quotes


def shell_texts(path: Path) -> list[str]:
    """The shell text of every rule of a file."""
    text = path.read_text()
    blocks = re.findall(r'^    shell:\n((?: {8}".*"\n)+)', text, re.MULTILINE)
    assert len(blocks) == len(re.findall(r"\bshell\b", text)), path
    return blocks


def test_every_value_in_a_shell_text_is_quoted_and_a_source_with_a_hyphen_is_no_flag() -> None:
    texts = [text for path in RULES for text in shell_texts(path)]
    assert len(texts) > 12
    text = "".join(texts)
    fields = re.findall(r"{([^}]*)}", text)
    assert [field for field in fields if not field.endswith(":q") and field not in NUMBERS] == []
    assert "--source {params" not in text


ORDER = ["default_target", "input", "output", "log", "wildcard_constraints", "priority"]
ORDER += ["retries", "group", "threads", "resources", "params", "shell"]


ON_A_CLUSTER = "wikipedia decontaminate segment multiway vocabulary_sample vocabulary shard "
ON_A_CLUSTER += "shard_multiway mine train fit bench"


def test_only_these_rules_ask_a_cluster_for_memory() -> None:
    """The others run where Snakemake runs: they are short, or need the internet."""
    text = "".join(map(Path.read_text, RULES))
    asking = re.compile("mem_mb=|train_resources")
    rules = [rule for rule in re.split(r"^rule ", text, flags=re.MULTILINE) if asking.search(rule)]
    assert {rule.partition(":")[0] for rule in rules} == set(ON_A_CLUSTER.split())
    lines = re.findall(r'^SUBMITTED \+?= "(.*)"', (ROOT / "Snakefile").read_text(), re.MULTILINE)
    assert {*" ".join(lines).split()} == {*ON_A_CLUSTER.split(), "train_on_nodes"}


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_the_parts_of_every_rule_stand_in_the_same_order(path: Path) -> None:
    for rule in re.split(r"^(?=rule |use rule )", path.read_text(), flags=re.MULTILINE)[1:]:
        parts = re.findall(r"^    (\w+):", rule, re.MULTILINE)
        assert parts == [part for part in ORDER if part in parts]
