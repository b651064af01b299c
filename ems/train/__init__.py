"""Training: the loop, the schedule, and checkpoints that make killed and resumed equal never
killed.
"""
