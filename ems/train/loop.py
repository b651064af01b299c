"""The training loop of one system: draw a batch, take a step, write it down."""

from contextlib import closing

from ems.train.checkpoint import Progressed
from ems.train.journal import Journal
from ems.train.step import Trainer


def run(trainer: Trainer, journal: Journal) -> Progressed:
    """Train from the newest checkpoint (or from nothing) to the last step; the logs of the run.

    Raises `EmsError` when a loss is not finite, and, once the step is saved, after SIGTERM or
    SIGUSR1.
    """
    start = journal.resume()
    trainer.system.train()
    with journal.stop.heeded(), closing(trainer.batches(start)) as batches:
        journal.validate_if_due()  # of step 0, or what a signal cut short
        for batch in journal.timed(batches):
            parts = trainer.step(batch)
            journal.add(parts)
    journal.average()
    return journal.done
