"""The record of a training run, and its schedule: losses, times, validation, checkpoints.

Losses are summed on the device and read when a row of the log is due, so that no step waits for a
GPU. Values are summed over all processes, and the first one writes them. After SIGTERM and SIGUSR1
(Slurm's `--signal=USR1@120`) the run finishes its step, saves, and exits with the status for
requeueing. SIGINT is not caught and stops it immediately.
"""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial
from types import FrameType
from typing import NoReturn

import torch
from torch import Tensor

from ems.base.errors import REQUEUE, EmsError, mistake
from ems.base.progress import Progress, log
from ems.base.schema import plain
from ems.shards.reader import Batch
from ems.train.checkpoint import Keep, RunProgress, chosen_weights, load_checkpoint, save_checkpoint
from ems.train.data import Data, Verification
from ems.train.distributed import AGREE_EVERY
from ems.train.measures import BY_LANGUAGE, LogRow, Meter, Scalars, peak_flops, rounded, step_flops
from ems.train.step import Trainer, learning_rate
from ems.train.validate import validate

SCALING = ("scale", "skipped")  # fields of float16's loss scaling in a row of the log
LOG_EVERY = 50  # steps between two lines of the loss log
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class Journal:
    """The record of the run of one system; `done` is its progress."""

    def __init__(self, name: str, trainer: Trainer, data: Data, scalars: Scalars) -> None:
        settings = trainer.settings
        documents = trainer.store.documents and settings.best_by == "loss"
        if settings.keep == "best" and (data.held_out if documents else data.validation) is None:
            kind = "documents" if documents else "pairs"
            raise mistake("nothing to validate on", name=name, documents=kind)
        self.name, self.trainer, self.settings = name, trainer, settings
        self.world, self.scalars = trainer.world, scalars
        self.validation = [store for store in (data.validation, data.held_out) if store]
        self.done, self.stop = RunProgress(), Stop()
        self.sums: dict[str, Tensor] = {}  # losses: float64 scalars on the device
        self.verification = Verification(data.stores().values(), self.world)

    def run(self) -> None:
        """Train up to the last step, then load the weights of the model into the system."""
        start = self.resume()
        self.trainer.system.train()
        with self.stop.catching(), closing(self.trainer.batches(start)) as batches:
            self.validate_if_due()  # at step 0, or if a signal ended the last validation
            for batch in self.timed(batches):
                self.add(self.trainer.step(batch))
        self.choose()
        self.verification.settle()  # after the last validation

    def resume(self) -> int:
        """Load the newest checkpoint, if any; return the number of steps done."""
        trainer = self.trainer
        self.done = load_checkpoint(trainer.state, trainer.system, trainer.optimizer)
        start = self.done.step
        self.done.attempts += 1
        self.world.check_same(start)
        trainer.set_scaling(self.done.scaling)
        self.started = time.monotonic() - self.done.seconds  # include earlier attempts
        scalar = partial(torch.tensor, dtype=torch.float64, device=trainer.device)
        self.sums = {name: scalar(value) for name, value in self.done.sums.items()}
        resumed = f"resumed at step {start} (attempt {self.done.attempts})"
        log.info("train %s: %s", self.name, resumed if start else "from step 0")
        parameters = sum(value.numel() for value in trainer.system.parameters())
        sizes = f"{parameters:,} parameters, {int(trainer.store.sizes.sum()):,} pairs"
        settings = json.dumps(plain(self.settings))
        log.info("train %s: %s, %s, %s", self.name, sizes, trainer.device, settings)
        return start

    def timed(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches of the remaining steps; count tokens and the time spent waiting."""
        total = self.settings.steps
        progress = Progress(f"train {self.name}", total, "steps", before=self.done.step)
        peak = peak_flops(self.trainer.device, self.settings.precision != "float32")
        self.meter = Meter(peak, self.world.size)
        for left in range(total - self.done.step, 0, -1):
            self.verification.step(left)
            before = time.monotonic()
            batch = next(batches)
            waited = time.monotonic() - before
            tokens = int(batch.lengths.sum())
            self.done.tokens += tokens * self.world.size  # approximate: processes differ slightly
            self.done.waited += waited
            flops = step_flops(self.trainer.system, batch.lengths)
            self.meter.add(batch.pairs, tokens, flops, waited)
            yield batch
            progress.add(1, self._note)
        progress.close()

    def _note(self) -> str:
        losses = ", ".join(f"{name} {value:.3f}" for name, value in self._means().items())
        rates = self.meter.read(time.monotonic())
        return f"{rates}, step {self.done.step}" + (f", loss {losses}" if losses else "")

    def add(self, parts: dict[str, Tensor]) -> None:
        """Count a step; log, validate and save if due. Raises `EmsError` after a signal, saved."""
        values = {name: part.detach().double() for name, part in parts.items()}
        self.sums = {name: self.sums.get(name, 0) + value for name, value in values.items()}
        self.done.summed += 1
        self.done.step += 1
        done, last = self.done.step, self.done.step == self.settings.steps
        if done % LOG_EVERY == 0 or last:
            self.trainer.check_finite()
            scaling = self.trainer.scaling()
            shown = {key: scaling[key] for key in SCALING if key in scaling}
            rate = learning_rate(done - 1, self.settings)
            self._record("train", {**self._means(), "lr": rate, **shown})
            self.sums, self.done.summed = {}, 0
        # asking all processes for a signal costs a wait, so a GPU does it every AGREE_EVERY steps
        asks = self.world.size == 1 or self.trainer.waits or done % AGREE_EVERY == 0
        if not last and asks and self.world.any(bool(self.stop.name)):
            self._save_and_stop()
        best = self.best() if self.validate_if_due() else None
        if last or done % self.settings.checkpoint_every == 0 or (best and best["step"] == done):
            self._save()

    def _means(self) -> dict[str, float]:
        return {name: float(value) / self.done.summed for name, value in self.sums.items()}

    def _record(self, part: str, values: LogRow) -> None:
        done = self.done
        place = {"step": done.step, "pairs": done.step * self.trainer.pairs}
        done.losses.append({"part": part, **place, **rounded(values)})
        self.scalars.write(done.losses)
        times = {"seconds": self._seconds(), "tokens": done.tokens, "wait": round(done.waited, 2)}
        done.times.append({**place, **times})

    def _seconds(self) -> float:
        return round(time.monotonic() - self.started, 2)

    def _save(self) -> None:
        self.verification.settle()
        trainer, done = self.trainer, self.done
        trainer.check_finite()
        trainer.check_weights(done.step)
        done.seconds = self._seconds()
        done.sums = {name: float(value) for name, value in self.sums.items()}
        done.scaling = trainer.scaling()
        if self.world.leads:
            save_checkpoint(trainer.state, trainer.system, trainer.optimizer, done, self._keep())
        self.world.wait()
        log.info("checkpoint at step %d", done.step)

    def _save_and_stop(self) -> NoReturn:
        self._save()
        done = f"stopped by {self.stop.name} after step {self.done.step:,}, which is saved"
        advice = f"the same command continues from there (exit status {REQUEUE})"
        raise EmsError(f"{done}; {advice}", REQUEUE)

    def best(self) -> LogRow | None:
        """Return the best validation after step 0, the latest on ties; None if `keep: last`."""
        rows = [row for row in self.done.losses if row["part"] == "validation" and row["step"]]
        if self.settings.keep == "last" or not rows:
            return None
        if self.settings.best_by == "p1":
            return max(reversed(rows), key=lambda row: row["p1"])
        return min(reversed(rows), key=lambda row: row["total"])

    def _keep(self) -> Keep:
        best = self.best()
        return Keep(self.settings, best["step"] if best else None)

    def choose(self) -> None:
        """Load the best weights or the mean of the last checkpoints, as the settings say."""
        best = self.best()
        if not self.done.step or not (self.settings.average_checkpoints or best):
            return
        weights, steps = chosen_weights(self.trainer.state, self._keep())
        self.trainer.system.load_state_dict(weights)
        if best:
            best["kept"] = True
            _log_validation(f"at step {best['step']}, whose weights are kept", best)
            return
        log.info("train %s: averaged the weights of steps %s", self.name, steps)
        if self.validation:
            _log_validation("of the mean", self._validated())

    def validate_if_due(self) -> bool:
        """Validate if this step is due and has no validation yet; return True if validated."""
        step = self.done.step
        due = step % self.settings.validate_every == 0 or step == self.settings.steps
        rows = [row for row in self.done.losses if row["part"] == "validation"] if due else []
        if not self.validation or not due or any(row["step"] == step for row in rows):
            return False
        self.trainer.check_finite()
        self.trainer.check_weights(step)
        try:
            # a signal interrupts the validation of a single process; the resumed run repeats it
            with self.stop.at_once() if self.world.size == 1 else nullcontext():
                parts = self._validated()
        except StoppedError:
            self._save_and_stop()
        self._record("validation", parts)
        _log_validation(f"at step {step}", self.done.losses[-1])
        return True

    def _validated(self) -> LogRow:
        parts: LogRow = {}
        for store in self.validation:
            parts |= validate(self.trainer.system, store, self.trainer.pairs, self.world)
        return parts


def _log_validation(when: str, values: LogRow) -> None:
    short = {name: value for name, value in values.items() if name != BY_LANGUAGE}
    log.info("validation %s: %s", when, json.dumps(short))


class StoppedError(BaseException):
    """A signal arrived within `at_once`."""


class Stop:
    """A request to stop: `name` of the signal that arrived, or ""."""

    def __init__(self) -> None:
        self.name = ""
        self._at_once = False

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Note signals instead of dying of them within this block."""
        with ExitStack() as stack:
            for number in SIGNALS:
                stack.callback(signal.signal, number, signal.signal(number, self._received))
            yield

    def _received(self, number: int, frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        if self._at_once:
            raise StoppedError

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise `StoppedError` on a signal within this block, whose work can be repeated."""
        self._at_once = True
        try:
            if self.name:
                raise StoppedError
            yield
        finally:
            self._at_once = False
