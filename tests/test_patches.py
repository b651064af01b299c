"""What rules/patches.smk mends in Snakemake and its executor for Slurm, each still broken there.

A test that fails here after an update of the lock says which patch can go.
"""

import inspect
import threading
from types import SimpleNamespace

from conftest import ROOT
from snakemake.cli import get_argument_parser
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake_executor_plugin_slurm import Executor

PATCHES = (ROOT / "rules/patches.smk").read_text()


def test_the_scheduler_has_a_rate_limit_of_its_own_and_wakes_up_for_it_after_each_job():
    assert "workflow.scheduler.job_rate_limiter = None" in PATCHES
    arguments = get_argument_parser([]).parse_args([])
    assert arguments.max_jobs_per_timespan
    assert "self._schedule_reevalutation(" in inspect.getsource(JobScheduler.schedule)


def test_the_handler_of_sigterm_waits_for_the_lock_of_the_thread_that_it_interrupts():
    assert "signal.SIGTERM" in PATCHES
    assert "self._lock = threading.Lock()" in inspect.getsource(JobScheduler.__init__)
    scheduler = SimpleNamespace(_lock=threading.Lock(), _open_jobs=threading.Semaphore())
    with scheduler._lock:
        stop = threading.Thread(target=JobScheduler.exit_gracefully, args=[scheduler])
        stop.start()
        stop.join(0.2)
        assert stop.is_alive()
    stop.join()


def test_each_task_of_an_array_starts_as_the_first_one():
    assert '"array_jobs"' in PATCHES
    source = inspect.getsource(Executor.run_array_jobs)
    assert "exec_job = self.format_job_exec(jobs[start_index - 1])" in source
