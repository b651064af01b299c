# What mends Snakemake 9.27 and its executor for Slurm 2.8.0. tests/test_patches.py fails where a newer one needs it no
# more. They take effect when jobs start: Snakemake makes its scheduler after it has read the rules.
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
            "--slurm-array-jobs: a task that fails would fail others and delete the model of the first one; "
            "leave it out, each job is then submitted by itself, or use slurm/array.sh"
        )
