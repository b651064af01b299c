"""The training loop of one system (EMS v2 section IV-C): Adam, warm-up, clip-free, resumable.

Notable choices:
- every step is a function of (seed, step) and the state before it: the batch is drawn with that key
  and the generator of dropout is seeded with it, so killed and resumed equals never killed, bit for
  bit;
- no step waits for a GPU: losses are summed on the device and read when a row of the log is due, so
  a row is the mean over the steps since the row before; whether all of them are finite is read then
  too, and what was not has changed no weight (finite.py);
- several processes (distributed.py) are one run: what is logged, checked and saved is of all of
  them, and is the same in each; the first one writes it.
"""

import json
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ems.errors import EmsError
from ems.objectives.batch import DeviceBatch
from ems.objectives.system import System
from ems.progress import Progress, log
from ems.shards.reader import Batch, PairStore
from ems.train.averaging import averaged
from ems.train.checkpoint import (
    Keep,
    Progressed,
    load_checkpoint,
    save_checkpoint,
)
from ems.train.distributed import AGREE_EVERY, GradientSum, World, dropout_seed
from ems.train.finite import Guard, batch_pairs, write_bad_batch
from ems.train.flops import StepFlops, peak_flops
from ems.train.memory import GradCache
from ems.train.meter import Meter
from ems.train.prefetch import Made, Prefetched
from ems.train.scalars import BY_LANGUAGE, Scalars, rounded
from ems.train.schedule import learning_rate
from ems.train.stopping import Stop, StoppedError
from ems.train.validate import validate
from ems.train.verification import Verification

LOG_EVERY = 50  # steps between two lines of the loss log


@dataclass
class Data:
    """What a system is trained on, and the vocabulary that its shards were made with."""

    training: PairStore
    validation: PairStore | None
    vocabulary: Path

    def stores(self) -> dict[str, PairStore]:
        """The shards by role."""
        stores = {"train": self.training, "validation": self.validation}
        return {role: store for role, store in stores.items() if store is not None}


class Run:
    """One training run: the system, its optimiser, and the loss log so far.

    A step is `draw`, `forward`, `backward`, `update`.
    """

    def __init__(
        self,
        system: System,
        settings: dict[str, Any],
        seed: int,
        data: Data,
        state: Path,
        device: torch.device,
        world: World | None = None,
    ) -> None:
        self.system, self.settings, self.seed = system, settings, seed
        self.data, self.state, self.device = data, state, device
        self.world = world or World()
        self.share = self.world.share(settings["batch_pairs"])
        self.gradients = GradientSum(system.parameters(), self.world)
        system.encoder.checkpoint_layers = settings["checkpoint_layers"]
        if settings["compile"]:
            system.encoder.compile_layers()
        parts = settings["grad_cache"]
        self.cache = GradCache(system, parts) if parts else None
        self.optimizer = torch.optim.Adam(
            system.parameters(),
            weight_decay=settings["weight_decay"],
            amsgrad=settings["amsgrad"],
            fused=True,
        )
        self.keep = Keep(
            settings["keep_checkpoints"],
            settings["average_checkpoints"],
            settings["checkpoint_every"],
            settings["steps"],
        )
        self.done = Progressed()
        self.sums: dict[str, Tensor] = {}  # float64 scalars on the device
        self.guard, self.stop = Guard(device), Stop()
        self.waits = device.type == "cpu"  # for the loss of each step
        self.meter = Meter(peak_flops(device, settings["precision"] == "bfloat16"), self.world.size)
        self.flops = StepFlops(system)
        self.verification = Verification(data.stores().values(), self.world)
        self.scalars = Scalars(None)
        self.started = time.monotonic()

    def steps(self, name: str) -> None:
        """Run from the newest checkpoint (or from nothing) to the last step."""
        total = self.settings["steps"]
        self._resume()
        start = self.done.step
        log.info("train %s: %s", name, f"resumed at step {start}" if start else "from step 0")
        log.info("train %s: %s", name, self._facts())
        self.system.train()
        with self.stop.heeded():
            try:
                self._validate_if_due()  # of step 0, or what a signal cut short
                self._loop(Progress(f"train {name}", total, "steps", before=start))
            except StoppedError:
                self._save_and_stop()

    def _resume(self) -> None:
        self.done = load_checkpoint(self.state, self.system, self.optimizer)
        self.world.check_same(self.done.step)
        self.started = time.monotonic() - self.done.seconds
        self.sums = {
            name: torch.tensor(value, dtype=torch.float64, device=self.device)
            for name, value in self.done.sums.items()
        }

    def _loop(self, progress: Progress) -> None:
        start, total = self.done.step, self.settings["steps"]
        self.meter.restart()
        with self._batches(start, total) as batches:
            for step in range(start, total):
                self.verification.step(total - step)
                self._step(step, self._next(batches))
                self.done.step = step + 1
                self._keep(step + 1)
                progress.add(1, self._note)
        progress.close()

    def _batches(self, start: int, total: int) -> Prefetched[Batch] | Made[Batch]:
        """The batches of the steps, drawn ahead where there is a core to do it."""
        alone = self.device.type == "cpu" and self.settings["threads"] == 1
        return (Made if alone else Prefetched)(self.draw, start, total)

    def _next(self, batches: Prefetched[Batch] | Made[Batch]) -> Batch:
        before = time.monotonic()
        batch = batches.next()
        waited = time.monotonic() - before
        tokens = int(batch.lengths.sum())
        self.done.tokens += tokens * self.world.size  # about: the other processes' are like these
        self.done.waited += waited
        self.meter.add(batch.pairs, tokens, self.flops(batch.lengths), waited)
        return batch

    # --- a step

    def _step(self, step: int, batch: Batch) -> None:
        torch.manual_seed(dropout_seed(self.seed, step, self.world.rank))
        parts = self.forward(batch)
        self.backward(parts)
        parts = self.world.sums(parts)
        self.update(step, parts)
        values = {name: part.detach().double() for name, part in parts.items()}
        self.sums = {name: self.sums.get(name, 0) + value for name, value in values.items()}
        self.done.summed += 1

    def draw(self, step: int) -> Batch:
        """This process's share of the batch of a step."""
        total, alpha = (self.settings[name] for name in ("batch_pairs", "sampling_alpha"))
        batch = self.data.training.draw(self.seed, step, total, alpha, self.share)
        return self.system.prepared(batch, self.seed, step, self.share.start, total)

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """The loss parts of a batch and their `total`, of this process's pairs."""
        share = (self.share.start, self.settings["batch_pairs"])
        on_device = DeviceBatch.of(batch, self.device, *share)
        if self.cache is None:
            return self.system(on_device)
        keys = (self.seed, batch.step, self.world.rank)
        return self.cache.forward(on_device, lambda part: dropout_seed(*keys, part))

    def backward(self, parts: dict[str, Tensor]) -> None:
        """The gradient of the total, summed over all processes."""
        self.optimizer.zero_grad(set_to_none=True)
        if self.cache is None:
            parts["total"].backward()
        else:
            with self.gradients.waiting():  # each parameter has several backward passes
                self.cache.backward(parts["total"])
        self.gradients.finish()

    def update(self, step: int, parts: dict[str, Tensor]) -> None:
        """The optimiser step, which does nothing once a loss or gradient was not finite.

        On a CPU that raises `EmsError` at once; on a GPU nothing waits here.
        """
        bad = self.guard.look(step, parts, self.system.parameters())
        if self.waits:
            self._check_finite()
        else:
            self.optimizer.found_inf = bad
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate(step)
        self.optimizer.step()

    def _rate(self, step: int) -> float:
        s = self.settings
        period = s.get("schedule_steps")
        return learning_rate(
            step, s["steps"], s["learning_rate"], s["warmup_steps"], s["schedule"], period
        )

    # --- after a step

    def _keep(self, done: int) -> None:
        """Log, validate and save after `done` steps, each when it is due and after the last step;
        save and stop when a signal asked for it.
        """
        last = done == self.settings["steps"]
        if done % LOG_EVERY == 0 or last:
            self._check_finite()
            self._record("train", done, self._means(), lr=self._rate(done - 1))
            self.sums, self.done.summed = {}, 0
        if not last and self._asked_to_stop():
            self._save_and_stop()
        self._validate_if_due()
        if done % self.settings["checkpoint_every"] == 0 or last:
            self._save()

    def _asked_to_stop(self) -> bool:
        """Whether a signal came to any process; several ask one another where that is cheap."""
        if self.world.size > 1 and not self.waits and self.done.step % AGREE_EVERY:
            return False
        return self.world.any(bool(self.stop.name))

    def _means(self) -> dict[str, float]:
        """The loss parts, means over the steps since the last row of the log."""
        return {name: float(value) / self.done.summed for name, value in self.sums.items()}

    def _save(self) -> None:
        self.verification.settle()
        self._check_finite()
        self._check_weights(self.done.step)
        self.done.seconds = self._seconds()
        self.done.sums = {name: float(value) for name, value in self.sums.items()}
        if self.world.leads:
            save_checkpoint(self.state, self.system, self.optimizer, self.done, self.keep)
        self.world.wait()
        log.info("checkpoint at step %d", self.done.step)

    def _save_and_stop(self) -> None:
        self._save()
        raise self.stop.error(self.done.step)

    def _note(self) -> str:
        """Rates and losses as words."""
        losses = ", ".join(f"{name} {value:.3f}" for name, value in self._means().items())
        rates = self.meter.read(time.monotonic())
        return f"{rates}, step {self.done.step}" + (f", loss {losses}" if losses else "")

    def _facts(self) -> str:
        parameters = sum(value.numel() for value in self.system.parameters())
        pairs = int(self.data.training.sizes.sum())
        return f"{parameters:,} parameters, {pairs:,} pairs, {self.device}, " + json.dumps(
            self.settings
        )

    def _check_finite(self) -> None:
        """Raise `EmsError` when a loss or a gradient was not finite; wait for the device."""
        found = self.guard.found()
        if found is None:
            return
        step, values = found
        if not self.world.leads:
            raise self._diverged(f"the loss of step {step} is not finite")
        s = self.settings
        pairs = batch_pairs(
            self.data.training, self.seed, step, s["batch_pairs"], s["sampling_alpha"]
        )
        words = write_bad_batch(self.state / f"bad-batch-{step}.json", pairs, values)
        named = ", ".join(f"{name} {value:.6g}" for name, value in values.items())
        raise self._diverged(f"the loss of step {step} is not finite ({named}); its pairs: {words}")

    def _check_weights(self, done: int) -> None:
        """Raise `EmsError` when the last step spoiled a weight; its own loss was finite still."""
        for name, value in self.system.named_parameters():
            if not torch.isfinite(value).all():
                raise self._diverged(f"the weights {name} are not finite after {done} steps")

    def _diverged(self, found: str) -> EmsError:
        return EmsError(
            f"{found}; lower train.learning_rate or raise train.warmup_steps. "
            f"The checkpoints in {self.state} are from before it"
        )

    def _validate_if_due(self) -> None:
        """Validate after `done.step` steps when that is due and was not done yet."""
        done, s = self.done.step, self.settings
        due = done % s["validate_every"] == 0 or done == s["steps"]
        if self.data.validation is None or not due or self._is_validated(done):
            return
        self._check_finite()
        self._check_weights(done)
        with self.stop.at_once() if self.world.size == 1 else nullcontext():
            parts = self._validated(self.data.validation)
        self._record("validation", done, parts)
        row = {k: v for k, v in self.done.losses[-1].items() if k != BY_LANGUAGE}
        log.info("validation at step %d: %s", done, json.dumps(row))

    def _is_validated(self, step: int) -> bool:
        rows = (row for row in self.done.losses if row["step"] == step)
        return any(row["part"] == "validation" for row in rows)

    def average(self, name: str) -> None:
        """Load the mean of the last checkpoints, if the settings ask for it, and validate it."""
        if not self.settings["average_checkpoints"] or not self.done.step:
            return
        weights, steps = averaged(self.state, self.keep)
        self.system.load_state_dict(weights)
        log.info("train %s: the weights are the means of those of steps %s", name, steps)
        if self.data.validation is not None:
            parts = self._validated(self.data.validation)
            parts.pop(BY_LANGUAGE)
            log.info("validation of the mean: %s", json.dumps(parts))

    def _validated(self, store: PairStore) -> dict[str, Any]:
        return validate(self.system, store, self.settings["batch_pairs"], self.world)

    def _record(self, part: str, step: int, values: dict[str, Any], **more: float) -> None:
        row = {"part": part, "step": step, "pairs": step * self.settings["batch_pairs"]}
        self.done.losses.append({**row, **rounded({**values, **more})})
        self.scalars.write(self.done.losses)
        times = {"step": step, "pairs": row["pairs"], "seconds": self._seconds()}
        self.done.times.append(
            {**times, "tokens": self.done.tokens, "wait": round(self.done.waited, 2)}
        )

    def _seconds(self) -> float:
        """Wall seconds of training up to now, those before a kill included."""
        return round(time.monotonic() - self.started, 2)
