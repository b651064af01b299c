"""Run several processes with `torchrun`, and ask which of them this one is.

    ems train --processes 4 ...                                             on one machine
    torchrun --nnodes 2 --nproc-per-node 4 ... -m -- ems train ...          on several, by hand

One process alone is rank 0 of 1. `--` keeps torchrun's parser from reading our flags as its own.
"""

import os
import signal
import sys

from ems.errors import FAILED, REQUEUE

STOPS = (signal.SIGTERM, signal.SIGUSR1)  # the processes save and end
SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"  # passed on to the processes


def launched() -> bool:
    """True if torchrun started this process. Others set RANK too, but not torchrun's run id."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def rank() -> int:
    """Return this process's number among all, from 0. Only rank 0 writes files."""
    return int(os.environ["RANK"]) if launched() else 0


def processes() -> int:
    """Return the number of processes that train together."""
    return int(os.environ["WORLD_SIZE"]) if launched() else 1


def local_rank() -> int:
    """Return this process's number on its machine, which is that of its GPU."""
    return int(os.environ["LOCAL_RANK"]) if launched() else 0


def become(count: int, threads: int, arguments: list[str]) -> None:
    """Replace this process by torchrun with `count` processes of `ems` and these arguments.

    The process id stays, so that signals reach torchrun. If one of the processes ends with an
    error, torchrun ends the others and exits with 1, or with 75 if it was stopped from outside.
    """
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    words = ["-m", "ems.torchrun", "--standalone", "--nproc-per-node", str(count)]
    words += ["--signals-to-handle", SIGNALS, "-m", "--", "ems", *arguments]
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *words])


def main() -> int:
    """Run torchrun with its own flags; return 75 if the processes were stopped and saved."""
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
