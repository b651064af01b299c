"""Training: a job (job.py), its steps (step.py) and its record (journal.py). A resumed run produces
the same bits as an uninterrupted one.
"""
