"""Training, from the outside in: a job (job.py), its loop (loop.py), a step (step.py), and what is
recorded and when (journal.py). Killed and resumed equals never killed, bit for bit.
"""

AFRESH = "EMS_AFRESH"  # in the environment of a job: the user said `--config afresh=true`
