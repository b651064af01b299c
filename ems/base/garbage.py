"""Python's search for garbage: objects that refer to each other, and that nothing else refers to.

It looks each time that 700 objects have come, and PyTorch alone brings 270,000 when it is imported:
a tenth of a short job, and of Snakemake's plan. What EMS does in quantity (arrays, lines, tensors)
is freed without it.
"""

import atexit
import gc

OBJECTS = 500_000  # that have come and not gone; small dictionaries in pairs: 100 MB


def look_rarely() -> None:
    """Let Python look for garbage less often, and not once more before it ends."""
    gc.set_threshold(OBJECTS)
    atexit.register(gc.freeze)
