"""Laws of what a stage says it cost: its own time and memory, its children's, nobody else's."""

import json
import subprocess
import sys

import pytest
from made.cli import Cli

FIELDS = {"stage", "seconds", "cpu_seconds", "max_rss_mb"}
# ems as a child of a process that holds so many MB, as Snakemake may
HEAVY_PARENT = (
    "import subprocess, sys; held = bytearray(int(sys.argv[1]) * 10**6)\n"
    "sys.exit(subprocess.run(sys.argv[2:]).returncode)\n"
)
# a stage that holds so many MB and starts a child that holds others and works
WITH_CHILD = """
import subprocess, sys
from pathlib import Path
from ems.base.processes import measured

own, child = (int(text) for text in sys.argv[1:3])
with measured("work", Path("costs.json")):
    held = bytearray(own * 10**6)
    work = f"held = bytearray({child} * 10**6); sum(at * at for at in range(4_000_000))"
    subprocess.run([sys.executable, "-S", "-c", work], check=True)
"""


@pytest.fixture
def ems(tmp_path):
    return Cli(tmp_path, own_process=True)


def read(path):
    costs = json.loads(path.read_text(encoding="utf-8"))
    assert set(costs) == FIELDS
    return costs


def test_a_stage_that_succeeds_leaves_plausible_costs(ems):
    lines = ems("check", "--experiment", "tiny", "--costs", "deep/er/costs.json")
    costs = read(ems.folder / "deep/er/costs.json")
    assert costs["stage"] == "check"
    assert 0 < costs["cpu_seconds"] < 60
    assert 0 < costs["seconds"] < 60
    assert 5 < costs["max_rss_mb"] < 2000
    for name, unit in (("seconds", "s,"), ("cpu_seconds", "s CPU,"), ("max_rss_mb", "MB at")):
        assert f"{costs[name]} {unit}" in lines[-1]


def test_costs_are_written_only_where_they_are_asked_for(ems):
    before = sorted(ems.folder.rglob("*"))
    ems("check", "--experiment", "tiny")
    assert sorted(ems.folder.rglob("*")) == before


@pytest.mark.parametrize(
    "stage",
    ["check --experiment nope", "segment --experiment tiny --source gone/de-en.tsv --out out"],
)
def test_a_stage_that_fails_leaves_no_costs(ems, stage):
    lines = ems(*stage.split(), "--costs", "costs.json", expect=1)
    assert not list(ems.folder.rglob("*costs*"))
    assert " s CPU, " not in "".join(lines)


def test_the_memory_of_a_stage_does_not_start_at_that_of_whoever_started_it(ems):
    command = ["-m", "ems.commands.cli", "check", "--experiment", "tiny", "--costs", "costs.json"]
    heavy = [sys.executable, "-c", HEAVY_PARENT, "500", sys.executable, *command]
    subprocess.run(heavy, cwd=ems.folder, check=True, capture_output=True)
    memory = read(ems.folder / "costs.json")["max_rss_mb"]
    ems("check", "--experiment", "tiny", "--costs", "costs.json")
    assert memory == pytest.approx(read(ems.folder / "costs.json")["max_rss_mb"], rel=0.2)
    assert memory < 400


def with_child(folder, own, child):
    """The costs of a stage that holds `own` MB and starts a child of `child` MB that works."""
    command = [sys.executable, "-c", WITH_CHILD, str(own), str(child)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return read(folder / "costs.json")


def test_the_time_and_the_memory_of_a_child_count(tmp_path):
    """Segmenters are children: Perl, Juman++, MeCab."""
    costs = with_child(tmp_path, own=1, child=300)
    assert costs["cpu_seconds"] > 0.15
    assert costs["seconds"] > 0.1
    assert 300 < costs["max_rss_mb"] < 450


def test_a_small_child_does_not_count_the_memory_of_the_stage_again(tmp_path):
    """To the kernel a child is at first as large as the process that it is forked from."""
    assert 300 < with_child(tmp_path, own=300, child=1)["max_rss_mb"] < 450
