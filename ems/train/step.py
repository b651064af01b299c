"""One step of training: the losses of a batch, their gradient, an update of the weights.

Notable choices:
- every step is a function of (seed, step) and the state before it: the batch is drawn with that key
  and the generator of dropout is seeded with it, so killed and resumed equals never killed, bit for
  bit;
- no step waits for a GPU: whether losses and gradients are finite is read now and then, and what
  was not has changed no weight (finite.py);
- several processes (distributed.py) share the pairs of a step and end it with the same weights.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from ems.errors import EmsError
from ems.objectives.batch import DeviceBatch
from ems.objectives.system import System
from ems.shards.reader import Batch, PairStore
from ems.train.batches import AHEAD, drawn
from ems.train.distributed import GradientSum, World, dropout_seed
from ems.train.finite import Guard, write_bad_batch
from ems.train.memory import GradCache
from ems.train.settings import TrainSettings


class Trainer:
    """A system with its optimiser, and the pairs that it is trained on (EMS v2 section IV-C).

    `draw` gives the batch of a step, `step` trains on it: `forward`, `backward`, `update`.
    """

    def __init__(
        self,
        system: System,
        settings: TrainSettings,
        seed: int,
        store: PairStore,
        state: Path,
        device: torch.device,
        world: World,
    ) -> None:
        self.system, self.settings, self.seed = system, settings, seed
        self.store, self.state, self.device, self.world = store, state, device, world
        self.pairs = settings.batch_pairs  # of a step, of which this process has a share
        self.share = world.share(self.pairs)
        self.gradients = GradientSum(system.parameters(), world)
        system.encoder.checkpoint_layers = settings.checkpoint_layers
        if settings.compile:
            system.encoder.compile_layers()
        parts = settings.grad_cache
        self.cache = GradCache(system, parts) if parts else None
        self.optimizer = torch.optim.Adam(
            system.parameters(),
            weight_decay=settings.weight_decay,
            amsgrad=settings.amsgrad,
            fused=True,
        )
        self.guard = Guard(device)
        self.waits = device.type == "cpu"  # for the loss of each step

    def batches(self, start: int) -> Iterator[Batch]:
        """The batches from step `start` on, drawn ahead where there is a core to do it."""
        alone = self.device.type == "cpu" and self.settings.threads == 1
        return drawn(self.draw, range(start, self.settings.steps), 0 if alone else AHEAD)

    def draw(self, step: int) -> Batch:
        """This process's share of the batch of a step."""
        alpha = self.settings.sampling_alpha
        batch = self.store.draw(self.seed, step, self.pairs, alpha, self.share)
        return self.system.prepared(batch, self.seed, step, self.share.start, self.pairs)

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Train on the batch of a step; the loss parts and their `total`, of all processes."""
        torch.manual_seed(dropout_seed(self.seed, batch.step, self.world.rank))
        parts = self.forward(batch)
        self.backward(parts)
        parts = self.world.sums(parts)
        self.update(batch.step, parts)
        return parts

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """The loss parts of a batch and their `total`, of this process's pairs."""
        on_device = DeviceBatch.of(batch, self.device, self.share.start, self.pairs)
        if self.cache is None:
            return self.system(on_device)
        keys = self.seed, batch.step, self.world.rank
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
            self.check_finite()
        else:
            self.optimizer.found_inf = bad
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        self.optimizer.step()

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        s = self.settings
        period = s.schedule_steps
        return learning_rate(step, s.steps, s.learning_rate, s.warmup_steps, s.schedule, period)

    def check_finite(self) -> None:
        """Raise `EmsError` when a loss or a gradient was not finite; wait for the device."""
        if bad := self.guard.found():
            step, values = bad
            problem = f"the loss of step {step} is not finite"
            if self.world.leads:
                drawn = self.seed, step, self.pairs, self.settings.sampling_alpha
                problem += f" {write_bad_batch(self.state, self.store, drawn, values)}"
            raise self._diverged(problem)

    def check_weights(self, done: int) -> None:
        """Raise `EmsError` when the last step spoiled a weight; its own loss was finite still."""
        for name, value in self.system.named_parameters():
            if not torch.isfinite(value).all():
                raise self._diverged(f"the weights {name} are not finite after {done} steps")

    def _diverged(self, problem: str) -> EmsError:
        return EmsError(
            f"{problem}; lower train.learning_rate or raise train.warmup_steps. "
            f"The checkpoints in {self.state} are from before it"
        )


def learning_rate(
    step: int, steps: int, peak: float, warmup: int, schedule: str, period: int | None = None
) -> float:
    """The rate of `step` (from 0) of `steps`: linear warm-up, then constant or falling.

    The paper names the warm-up (EMS v2 IV-C) and no decay, so `constant` is the default of an
    experiment; `linear` falls from the end of the warm-up to 0 after the last step; `cosine` is
    that of the authors' code, 0.5 (1 + cos(pi step / period)) from step 0 on, times the warm-up.
    `period` is where linear and cosine reach 0 (default: `steps`).
    """
    period = period or steps
    rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
    if schedule == "cosine":
        return peak * rise * 0.5 * (1 + math.cos(math.pi * min(step, period) / period))
    if schedule == "constant" or step < warmup:
        return peak * rise
    return peak * max(0.0, (period - step) / max(1, period - warmup))
