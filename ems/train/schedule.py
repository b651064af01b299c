"""Learning rate over steps: linear warm-up (EMS v2 IV-C), then constant, linear or cosine decay."""

import math


def learning_rate(
    step: int, steps: int, peak: float, warmup: int, schedule: str, period: int | None = None
) -> float:
    """The rate of `step` (from 0) of `steps`.

    The paper names the warm-up and no decay, so `constant` is the default of an experiment;
    `linear` falls from the end of the warm-up to 0 after the last step; `cosine` is that of the
    authors' code, 0.5 (1 + cos(pi step / period)) from step 0 on, times the warm-up. `period` is
    where linear and cosine reach 0 (default: `steps`).
    """
    period = period or steps
    rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
    if schedule == "cosine":
        return peak * rise * 0.5 * (1 + math.cos(math.pi * min(step, period) / period))
    if schedule == "constant" or step < warmup:
        return peak * rise
    return peak * max(0.0, (period - step) / max(1, period - warmup))
