"""Several processes by `torchrun`: how to become them, and which of how many this one is.

    ems train --processes 4 ...                                             on one machine
    torchrun --nnodes 2 --nproc-per-node 4 ... -m -- ems train ...          on several, by hand

One process alone is rank 0 of 1. `--` keeps torchrun's parser from reading our flags as its own.
"""

import os
import signal
import sys

from ems.errors import FAILED, REQUEUE

STOPS = (signal.SIGTERM, signal.SIGUSR1)  # upon which the processes save
SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"  # that torchrun hands on to the processes


def _told(name: str, alone: int) -> int:
    """A variable of torchrun's. Others set RANK too, but not torchrun's run id."""
    return int(os.environ[name]) if launched() else alone


def rank() -> int:
    """This process's number among all, from 0. Only rank 0 writes files."""
    return _told("RANK", 0)


def processes() -> int:
    """How many processes train together."""
    return _told("WORLD_SIZE", 1)


def local_rank() -> int:
    """This process's number on its machine: which GPU it takes."""
    return _told("LOCAL_RANK", 0)


def launched() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def become(count: int, threads: int, arguments: list[str]) -> None:
    """Turn this process into torchrun with `count` processes of `ems` and these arguments.

    It keeps its process id, so whoever sends signals to it reaches torchrun. When one of the
    processes ends with an error, torchrun ends the others and exits with 1, or with 75 where the
    error was to be stopped from outside.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    words = ["-m", "ems.torchrun", "--standalone", "--nproc-per-node", str(count)]
    words += ["--signals-to-handle", SIGNALS, "-m", "--", "ems", *arguments]
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *words])


def main() -> int:
    """torchrun with its own flags; its status tells stopped (75: the same command goes on) from
    failed.
    """
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

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
