"""Run several processes with `torchrun`, and ask which of them this one is.

    ems train --processes 4 ...                                     on one machine
    ems train --processes 4 --nodes 2 ...                           on two, in a job of Slurm
    torchrun --nnodes 2 --nproc-per-node 4 ... -m -- ems train ...  on two, by hand

In a job of Slurm one step has a torchrun on each node. They meet at the node that the job started
on, and a node is numbered as Slurm numbers it. One process alone is rank 0 of 1. `--` keeps
torchrun's parser from reading our flags as its own.
"""

import os
import shutil
import signal
import socket
import sys

from ems.base.errors import FAILED, REQUEUE, mistake

STOPS = (signal.SIGTERM, signal.SIGUSR1)  # on these, the processes save and end
GONE = 30  # seconds until a machine that does not end with the others counts as lost
SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"  # passed on to the processes


def launched() -> bool:
    """Return true if torchrun started this process. Other launchers set RANK, but no run id."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def rank() -> int:
    """Return this process's number among all, from 0. Only rank 0 writes files."""
    return int(os.environ["RANK"]) if launched() else 0


def processes() -> int:
    return int(os.environ["WORLD_SIZE"]) if launched() else 1


def become(count: int, nodes: int, threads: int, arguments: list[str]) -> None:
    """Replace this process by torchrun with `count` processes of `ems` on each of `nodes` machines.
    The process id stays, so that signals reach torchrun, or `srun`. If one process fails, the
    others are ended too, on all machines; the status is 1, or 75 if they were stopped from outside.
    Raises `EmsError` for several machines outside of a Slurm job.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    words = [sys.executable, "-m", "ems.base.torchrun", "--nproc-per-node", str(count)]
    if nodes == 1:
        words += ["--standalone"]
    else:
        with socket.create_server(("", 0)) as listening:  # finds a free port
            port = str(listening.getsockname()[1])
        words = [*_step(nodes, count * threads), *words, "--nnodes", str(nodes)]
        words += ["--master-addr", socket.gethostname(), "--master-port", port]
    words += ["--signals-to-handle", SIGNALS, "-m", "--", "ems", *arguments]
    sys.stderr.flush()
    os.execv(words[0], words)


def _step(nodes: int, cpus: int) -> list[str]:
    program = shutil.which("srun")
    if program is None or "SLURM_JOB_ID" not in os.environ:
        raise mistake("no Slurm job", nodes=nodes)
    words = [program, f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    return [*words, f"--cpus-per-task={cpus}", "--kill-on-bad-exit=1", f"--wait={GONE}"]


def main() -> int:
    """Run torchrun with its own flags; return 75 if the processes were stopped and saved."""
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    if node := os.environ.get("SLURM_NODEID") if "--master-addr" in sys.argv else None:
        sys.argv[1:1] = ["--node-rank", node]
    try:
        run.main()
    except SignalException as error:
        return REQUEUE if error.sigval in STOPS else 128 + error.sigval
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        codes = {failure.exitcode for failure in error.failures.values()}
        return REQUEUE if codes == {REQUEUE} else FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
