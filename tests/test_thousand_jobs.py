"""perf/thousand_jobs.py: a Snakemake that is killed on a real Slurm, and the next one."""

import json
import os
import subprocess
import sys

from conftest import ROOT
from slurm_made import impatient, needs_slurm


def test_after_a_killed_snakemake_no_job_is_lost_and_none_is_run_twice(tmp_path):
    needs_slurm()
    out = tmp_path / "out.json"
    flags = ["--private", "--kill", "--experiment", "tiny", "--target", "text", "--out", str(out)]
    script = ROOT / "perf" / "thousand_jobs.py"
    environment = {**os.environ, "PATH": f"{impatient(tmp_path)}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, script, *flags]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(out.read_text())
    assert results["jobs"] > 20
    assert 0 < results["ended_before"] < results["jobs"]
    assert (results["lost"], results["twice"]) == (0, 0)
    assert done.stdout.splitlines()[-1].endswith("lost=0 twice=0")
