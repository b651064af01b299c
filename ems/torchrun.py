"""What `torchrun` told this process: which of how many it is. One process alone is rank 0 of 1.

torchrun --standalone --nproc-per-node 4 -m ems train ...
"""

import os


def _told(name: str, alone: int) -> int:
    """A variable of torchrun's. Others set RANK too, but not torchrun's run id."""
    return int(os.environ[name]) if "TORCHELASTIC_RUN_ID" in os.environ else alone


def rank() -> int:
    """This process's number among all, from 0. Only rank 0 writes files."""
    return _told("RANK", 0)


def processes() -> int:
    """How many processes train together."""
    return _told("WORLD_SIZE", 1)


def local_rank() -> int:
    """This process's number on its machine: which GPU it takes."""
    return _told("LOCAL_RANK", 0)
