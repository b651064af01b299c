"""Laws of costs: a stage counts its own time and memory and its children's, and the table counts
every job once, stages in the order of the pipeline.
"""

import json
import subprocess
import sys

import pytest
from made import golden
from made.cli import Cli
from made.experiments import REAL, Settings, edited
from made.tables import SUFFIXES, csv_rows, write_cost

from ems.base.errors import EmsError
from ems.tables.logs import STAGES, write_costs_table
from ems.workflow.plan import has_job

# ems as a child of a process that holds so many MB, as Snakemake may
HEAVY_PARENT = """
import subprocess, sys
held = bytearray(int(sys.argv[1]) * 10**6)
sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""
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
CHECK = ("check", "--experiment", "tiny", "--costs", "costs.json")


def read(folder):
    costs = json.loads((folder / "costs.json").read_text(encoding="utf-8"))
    assert set(costs) == {"stage", "seconds", "cpu_seconds", "max_rss_mb"}
    return costs


def test_a_stage_leaves_plausible_costs_whoever_started_it(tmp_path):
    ems = Cli(tmp_path)
    lines = ems.start(*CHECK, stderr=subprocess.PIPE, text=True).communicate()[1].splitlines()
    costs = read(ems.folder)
    assert costs["stage"] == "check"
    assert 0 < costs["cpu_seconds"] < 60
    assert 0 < costs["seconds"] < 60
    assert 5 < costs["max_rss_mb"] < 400
    for name, unit in (("seconds", "s,"), ("cpu_seconds", "s CPU,"), ("max_rss_mb", "MB at")):
        assert f"{costs[name]} {unit}" in lines[-1]
    stage = [sys.executable, "-m", "ems.commands.cli", *CHECK]
    heavy = [sys.executable, "-c", HEAVY_PARENT, "500", *stage]
    subprocess.run(heavy, cwd=ems.folder, check=True, capture_output=True)
    assert read(ems.folder)["max_rss_mb"] == pytest.approx(costs["max_rss_mb"], rel=0.2)


@pytest.mark.parametrize(
    ("own", "child"),
    [
        (1, 300),  # a segmenter is a child: Perl, Juman++, MeCab
        (300, 1),  # to the kernel a child is at first as large as the process it is forked from
    ],
)
def test_the_time_and_the_memory_of_a_child_count_once(tmp_path, own, child):
    command = [sys.executable, "-c", WITH_CHILD, str(own), str(child)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    costs = read(tmp_path)
    assert costs["cpu_seconds"] > 0.15
    assert costs["seconds"] > 0.1
    assert 300 < costs["max_rss_mb"] < 450


# --- the table


def test_the_table_counts_jobs_by_stage_and_trainings_and_benchmarks_by_system(tmp_path):
    """Unknown stages come last, and where the files lie makes no difference."""
    texts = []
    for folder in (tmp_path / "one", tmp_path / "two" / "deeper"):
        costs = folder / "costs"
        write_cost(costs, "prepare/a", "prepare", 1.25, 1.0, 50.4)
        write_cost(costs, "prepare/b", "prepare", 1234.0, 2.5, 80.6)
        (costs / "prepare/killed.json").touch()
        (costs / "train").mkdir()
        (costs / "train/ems.times.jsonl").write_text('{"step": 0}\n')  # no costs of a job
        for system in ("ems", "ems-no-xtr"):
            write_cost(costs, f"train/{system}", "train")
            for benchmark in ("ntrex", "tatoeba"):
                write_cost(costs, f"bench/{system}/{benchmark}", "bench")
        for stage in ("zip", "encode", "fetch", "sample", "demo-mirror"):
            write_cost(costs, f"{stage}/x", stage)
        write_costs_table(costs, folder / "t.tex")
        texts.append([(folder / f"t{suffix}").read_text() for suffix in SUFFIXES])
    assert texts[0] == texts[1]
    golden.check("tables/costs.tex", (tmp_path / "one/t.tex").read_text())
    assert len(set(STAGES)) == len(STAGES)


def test_jobs_that_the_experiment_no_longer_has_are_not_counted(tmp_path):
    folder, table = tmp_path / "costs", tmp_path / "table.tex"
    write_cost(folder, "train/new", "train", 5.0)
    write_cost(folder, "train/old", "train", 1200.0)
    write_cost(folder, "bench/old/tatoeba", "bench", 34.5)
    write_costs_table(folder, table, lambda job: "old" not in job)
    assert list(csv_rows(table)) == ["train new", "Total"]
    assert csv_rows(table)["Total"]["Jobs"] == "1"
    assert "Not counted: 2 jobs (1,234.5 seconds)" in table.read_text()
    with pytest.raises(EmsError, match="jobs that the experiment no longer has"):
        write_costs_table(folder, table, lambda job: False)


def test_an_experiment_has_the_jobs_of_its_corpora_systems_and_benchmarks(tmp_path):
    own = {"name": "Own", "version": "v1", "source": "x", "kind": "documents", "languages": ["de"]}
    wikipedia = {"name": "Wikipedia", "version": "20260101", "kind": "documents"}
    corpora = [own, wikipedia | {"languages": ["de"]}, *REAL["corpora"]]
    value = edited(REAL, "benchmarks", ["tatoeba"]) | {"corpora": corpora}
    experiment = Settings(tmp_path, value).load(value)
    golden.replay("jobs.txt", lambda job: str(has_job(experiment, tuple(job.split("/")))))
