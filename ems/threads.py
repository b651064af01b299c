"""How the threads of a matrix product wait for one another."""

import os

# threads that spin for one another stop where another program needs a core (perf/company.py)
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}


def wait_patiently() -> None:
    """Let OpenMP's threads sleep while they wait, unless the user has said how they should.

    Call it before PyTorch is imported, which reads the environment once.
    """
    for name, value in PATIENT.items():
        os.environ.setdefault(name, value)
