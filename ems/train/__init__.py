"""Training: the loop, the schedule, and checkpoints that make killed and resumed equal never
killed.
"""

AFRESH = "EMS_AFRESH"  # in the environment of a job: the user said `--config afresh=true`
