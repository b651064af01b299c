"""Training, from the outside in: a job (job.py), its steps (step.py), and what is recorded and when
(journal.py). A run that is killed and resumed ends like one that never was, bit for bit.
"""
