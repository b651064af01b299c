"""Learning rate over steps: linear warm-up (EMS v2 IV-C), then constant or linear decay."""


def learning_rate(step: int, steps: int, peak: float, warmup: int, schedule: str) -> float:
    """The rate of `step` (from 0) of `steps`; `schedule` is constant or linear (to 0 after the
    last).

    The paper names the warm-up and no decay, so `constant` is the default of an experiment.
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    if schedule == "constant":
        return peak
    return peak * (steps - step) / max(1, steps - warmup)
