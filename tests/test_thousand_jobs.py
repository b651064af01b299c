"""perf/thousand_jobs.py: a Snakemake that is killed on a real Slurm, and the next one."""

import json
import subprocess
import sys

from conftest import ROOT
from slurm_made import needs_slurm


def test_after_a_killed_snakemake_no_job_is_lost_and_none_is_run_twice(tmp_path):
    needs_slurm()
    out = tmp_path / "out.json"
    flags = ["--private", "--kill", "--experiment", "tiny", "--target", "text", "--out", str(out)]
    script = ROOT / "perf" / "thousand_jobs.py"
    done = subprocess.run([sys.executable, script, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(out.read_text())
    assert results["jobs"] > 20
    assert 0 < results["ended_before"] < results["jobs"]
    assert (results["lost"], results["twice"]) == (0, 0)
    assert done.stdout.splitlines()[-1].endswith("lost=0 twice=0")
