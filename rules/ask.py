"""List the jobs that Snakemake would submit: `python rules/ask.py OUT.json --profile slurm -- all`.

The arguments after OUT.json are Snakemake's own. It plans a run with the profile, its groups and
its `set-resources`; then this executor writes the jobs and starts none. The file is not part of
ems, which never imports Snakemake.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from snakemake import cli
from snakemake_interface_executor_plugins.executors.base import AbstractExecutor
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry
from snakemake_interface_executor_plugins.settings import CommonSettings

# like a cluster, so that groups are formed; a dry run, so that nothing is changed on disk
common_settings = CommonSettings(
    non_local_exec=True, implies_no_shared_fs=False, job_deploy_sources=False, dryrun_exec=True
)
NAME = "ask"


class Executor(AbstractExecutor):
    """Writes all jobs of the plan when Snakemake is about to submit the first."""

    out: Path

    def __init__(self, workflow, logger) -> None:
        super().__init__(workflow, logger)
        jobs = [entry(job) for job in workflow.dag.get_jobs_or_groups()]
        self.out.write_text(json.dumps([job for job in jobs if job["rules"]]), encoding="utf-8")
        raise SystemExit(0)  # before a local job could start

    def run_job(self, job) -> None:
        """Start nothing."""

    cancel = shutdown = handle_job_success = handle_job_error = run_job


def entry(job) -> dict:
    """Return the resources, the number of jobs per rule and the cost files of a job or a group."""
    # a rule without a command only collects its inputs
    parts = [part for part in (job.jobs if job.is_group() else [job]) if part.shellcmd]
    resources = {
        name: value if isinstance(value, int) else str(value)
        for name, value in job.resources.items()
        if not name.startswith("_") and name != "tmpdir"
    }
    return {
        "local": job.is_local,
        "threads": job.threads,
        "resources": resources,
        "rules": dict(sorted(Counter(part.rule.name for part in parts).items())),
        "costs": sorted(path for part in parts for path in part.log if path.endswith(".json")),
    }


def main(out: str, words: list[str]) -> int:
    """Write the jobs that Snakemake would submit to `out`; return its exit status."""
    Executor.out = Path(out)
    registry = ExecutorPluginRegistry()
    registry.register_plugin(f"{registry.module_prefix}{NAME}", sys.modules[__name__])
    sys.argv = ["snakemake", f"--executor={NAME}", "--nolock", "--forceall", *words]
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
