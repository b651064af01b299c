"""What a run of training records, and when: losses, times, validation, checkpoints, its end.

Notable choices:
- losses are summed on the device and read when a row of the log is due, so that no step waits for a
  GPU; a row is the mean over the steps since the row before;
- what several processes log, check and save is of all of them, and is the same in each; the first
  one writes it.
"""

import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NoReturn

import torch
from torch import Tensor

from ems.progress import Progress, log
from ems.settings import plain
from ems.shards.reader import Batch, PairStore
from ems.train.batches import Data
from ems.train.checkpoint import Keep, Progressed, averaged, load_checkpoint, save_checkpoint
from ems.train.distributed import AGREE_EVERY
from ems.train.scalars import BY_LANGUAGE, Scalars, rounded
from ems.train.speed import Meter, StepFlops, peak_flops
from ems.train.step import Trainer
from ems.train.stopping import Stop, StoppedError
from ems.train.validate import validate
from ems.train.verification import Verification

LOG_EVERY = 50  # steps between two lines of the loss log


class Journal:
    """The record of the run of one system: how far it is (`done`), and what it left behind."""

    def __init__(self, name: str, trainer: Trainer, data: Data, scalars: Scalars) -> None:
        settings = trainer.settings
        self.name, self.trainer, self.settings = name, trainer, settings
        self.world, self.validation, self.scalars = trainer.world, data.validation, scalars
        self.keep = Keep(
            settings.keep_checkpoints,
            settings.average_checkpoints,
            settings.checkpoint_every,
            settings.steps,
        )
        self.done, self.stop = Progressed(), Stop()
        self.sums: dict[str, Tensor] = {}  # float64 scalars on the device
        peak = peak_flops(trainer.device, settings.precision == "bfloat16")
        self.meter, self.flops = Meter(peak, self.world.size), StepFlops(trainer.system)
        self.verification = Verification(data.stores().values(), self.world)

    def resume(self) -> int:
        """Load the newest checkpoint, if there is one; the number of steps that are done."""
        trainer = self.trainer
        self.done = load_checkpoint(trainer.state, trainer.system, trainer.optimizer)
        self.world.check_same(self.done.step)
        self.started = time.monotonic() - self.done.seconds
        self.sums = {
            name: torch.tensor(value, dtype=torch.float64, device=trainer.device)
            for name, value in self.done.sums.items()
        }
        start = self.done.step
        log.info("train %s: %s", self.name, f"resumed at step {start}" if start else "from step 0")
        log.info("train %s: %s", self.name, self._facts())
        return start

    def _facts(self) -> str:
        trainer = self.trainer
        parameters = sum(value.numel() for value in trainer.system.parameters())
        pairs = int(trainer.store.sizes.sum())
        sizes = f"{parameters:,} parameters, {pairs:,} pairs, {trainer.device}"
        return f"{sizes}, {json.dumps(plain(self.settings))}"

    # --- a step

    def timed(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches of the steps that are left; counts them and the time waited for each."""
        total = self.settings.steps
        progress = Progress(f"train {self.name}", total, "steps", before=self.done.step)
        self.meter.restart()
        for left in range(total - self.done.step, 0, -1):
            self.verification.step(left)
            before = time.monotonic()
            batch = next(batches)
            waited = time.monotonic() - before
            tokens = int(batch.lengths.sum())
            self.done.tokens += tokens * self.world.size  # about: the other processes' are alike
            self.done.waited += waited
            self.meter.add(batch.pairs, tokens, self.flops(batch.lengths), waited)
            yield batch
            progress.add(1, self._note)
        progress.close()

    def _note(self) -> str:
        """Rates and losses as words."""
        losses = ", ".join(f"{name} {value:.3f}" for name, value in self._means().items())
        rates = self.meter.read(time.monotonic())
        return f"{rates}, step {self.done.step}" + (f", loss {losses}" if losses else "")

    def add(self, parts: dict[str, Tensor]) -> None:
        """Count a step with these losses: log, validate and save, each when it is due and after the
        last step; save and stop when a signal asked for it.
        """
        values = {name: part.detach().double() for name, part in parts.items()}
        self.sums = {name: self.sums.get(name, 0) + value for name, value in values.items()}
        self.done.summed += 1
        self.done.step += 1
        done, last = self.done.step, self.done.step == self.settings.steps
        if done % LOG_EVERY == 0 or last:
            self.trainer.check_finite()
            self._record("train", self._means(), lr=self.trainer.rate(done - 1))
            self.sums, self.done.summed = {}, 0
        if not last and self._asked_to_stop():
            self._save_and_stop()
        self.validate_if_due()
        if done % self.settings.checkpoint_every == 0 or last:
            self._save()

    def _means(self) -> dict[str, float]:
        """The loss parts, means over the steps since the last row of the log."""
        return {name: float(value) / self.done.summed for name, value in self.sums.items()}

    def _asked_to_stop(self) -> bool:
        """Whether a signal came to any process; several ask one another where that is cheap."""
        if self.world.size > 1 and not self.trainer.waits and self.done.step % AGREE_EVERY:
            return False
        return self.world.any(bool(self.stop.name))

    # --- rows

    def _record(self, part: str, values: dict[str, Any], **more: float) -> None:
        """Add a row to the loss log, to TensorBoard's scalars, and one to the times."""
        done = self.done
        place = {"step": done.step, "pairs": done.step * self.trainer.pairs}
        done.losses.append({"part": part, **place, **rounded({**values, **more})})
        self.scalars.write(done.losses)
        times = {"seconds": self._seconds(), "tokens": done.tokens, "wait": round(done.waited, 2)}
        done.times.append({**place, **times})

    def _seconds(self) -> float:
        """Wall seconds of training up to now, those before a kill included."""
        return round(time.monotonic() - self.started, 2)

    # --- checkpoints

    def _save(self) -> None:
        self.verification.settle()
        trainer, done = self.trainer, self.done
        trainer.check_finite()
        trainer.check_weights(done.step)
        done.seconds = self._seconds()
        done.sums = {name: float(value) for name, value in self.sums.items()}
        if self.world.leads:
            save_checkpoint(trainer.state, trainer.system, trainer.optimizer, done, self.keep)
        self.world.wait()
        log.info("checkpoint at step %d", done.step)

    def _save_and_stop(self) -> NoReturn:
        self._save()
        raise self.stop.error(self.done.step)

    def average(self) -> None:
        """Load the mean of the last checkpoints, if the settings ask for it, and validate it."""
        if not self.settings.average_checkpoints or not self.done.step:
            return
        weights, steps = averaged(self.trainer.state, self.keep)
        self.trainer.system.load_state_dict(weights)
        log.info("train %s: the weights are the means of those of steps %s", self.name, steps)
        if self.validation is not None:
            _log_validation("of the mean", self._validated(self.validation))

    # --- validation

    def validate_if_due(self) -> None:
        """Validate after `done.step` steps when that is due and was not done yet.

        A signal ends it in a run of one process: it is done after the run is resumed.
        """
        step = self.done.step
        due = step % self.settings.validate_every == 0 or step == self.settings.steps
        if self.validation is None or not due or self._is_validated(step):
            return
        self.trainer.check_finite()
        self.trainer.check_weights(step)
        try:
            with self.stop.at_once() if self.world.size == 1 else nullcontext():
                parts = self._validated(self.validation)
        except StoppedError:
            self._save_and_stop()
        self._record("validation", parts)
        _log_validation(f"at step {step}", self.done.losses[-1])

    def _is_validated(self, step: int) -> bool:
        rows = (row for row in self.done.losses if row["step"] == step)
        return any(row["part"] == "validation" for row in rows)

    def _validated(self, store: PairStore) -> dict[str, Any]:
        return validate(self.trainer.system, store, self.trainer.pairs, self.world)


def _log_validation(when: str, values: dict[str, Any]) -> None:
    """Log validation without the scores of each language."""
    short = {name: value for name, value in values.items() if name != BY_LANGUAGE}
    log.info("validation %s: %s", when, json.dumps(short))
