"""`ems run`: progress, errors and the summary."""

import sys

import pytest

from ems.base.errors import EmsError
from ems.workflow.run import follow, run_targets

SCRIPT = """
print("Job stats: total 4")
print("12:00:00 train ems: start, 60 steps")
print("1 of 4 steps (25%) done", flush=True)
print("12:00:01 train ems: 30/60 steps (50 %), 4.5 steps/s, ETA 0:07")
print("3 of 4 steps (75%) done")
"""
FAILS = """
print("12:00:02 error: shards/a.bin: damaged; delete it")
print("12:00:03 error: results of another job")
raise SystemExit(1)
"""
REFUSED = """
print('WorkflowError in file "rules/common.smk", line 13:')
print("configs/x.yaml: systems: wrong")
raise SystemExit(1)
"""


def run(script, folder):
    follow([sys.executable, "-c", script], str(folder / "log"), "demo")


def test_progress_counts_steps_and_names_the_work_of_a_job(tmp_path, caplog, logged, monkeypatch):
    monkeypatch.setattr("ems.workflow.run.EVERY", 0)
    run(SCRIPT + 'print("4 of 4 steps (100%) done")', tmp_path)
    lines = [line for line in caplog.messages if "steps (" in line]
    assert lines[1].startswith("demo: 1/4 steps (25 %)")
    assert lines[1].endswith("train ems: 30/60 steps (50 %)")
    assert lines[-1].startswith("demo: 4/4 steps (100 %)")
    assert "Job stats" in (tmp_path / "log").read_text()  # which the terminal does not show
    assert not any("Job stats" in line for line in caplog.messages)


def test_the_first_error_of_a_job_is_the_error(tmp_path):
    with pytest.raises(EmsError, match=r"^shards/a.bin: damaged; delete it; .*log$"):
        run(SCRIPT + FAILS, tmp_path)
    with pytest.raises(EmsError, match=r"^configs/x.yaml: systems: wrong; .*log$"):
        run(REFUSED, tmp_path)
    with pytest.raises(EmsError, match=r"^snakemake: exit status 3; .*log$"):
        run("raise SystemExit(3)", tmp_path)


def test_the_messages_of_another_run_in_the_folder_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (".snakemake/locks/0.input.lock", "results/x/logs/snakemake.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("1 of 9 steps (11%) done")
    with pytest.raises(
        EmsError, match=r"another Snakemake runs in this folder.*`snakemake --unlock`"
    ):
        run_targets("x", "all")
    assert path.read_text()


def test_a_finished_experiment_ends_with_its_scores(finished):
    (finished.folder / "results/tiny/tables/tatoeba.tex").unlink()
    done = finished.run("ems", "run")
    steps = [line for line in done.stderr.splitlines() if "steps (100 %)" in line]
    assert "tiny: all: 5/5 steps" in steps[-1]  # the table, its copy, two reports, all
    lines = done.stdout.splitlines()
    assert lines[0].startswith("tiny is finished after ")
    assert lines[3].split() == ["system", "tatoeba"]
    assert [line.split()[0] for line in lines[4:7]] == ["ems", "untrained", "char-ngram"]
    assert len(lines) <= 12
    assert (finished.folder / "results/report.html").exists()
