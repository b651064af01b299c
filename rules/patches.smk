# Patches of Snakemake 9.27 and its Slurm executor 2.8.0. tests/test_project.py fails if a newer version no longer needs
# one. They are applied when jobs start, since Snakemake makes its scheduler after it has read the rules.
import signal
from threading import Thread

from snakemake.exceptions import WorkflowError


def mend(workflow):
    # The scheduler would solve its plan again each second, once for every job that has finished.
    # https://github.com/snakemake/snakemake/pull/3744
    workflow.scheduler.job_rate_limiter = None
    # The handler of SIGTERM waits for a lock that the thread which the signal interrupts holds while it finishes jobs.
    # Not reported upstream.
    stop = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *caught: Thread(target=stop, args=caught).start())
    # In an array each task starts as the first one's job, which then waits for the first one's outputs, and deletes
    # them if its own command fails. https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/447
    if getattr(workflow.executor_settings, "array_jobs", None):
        raise WorkflowError(
            "--slurm-array-jobs: a failed task would fail others and delete the model of the first task; "
            "leave the flag out (jobs are then submitted one by one), or use slurm/array.sh"
        )
