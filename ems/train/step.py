"""One step of training: the losses of a batch, their gradient, an update of the weights.

Notable choices:
- A step is a function of (seed, step) and the state before it. Batch and dropout are seeded with
  that key, so a resumed run produces the same bits as an uninterrupted one.
- No step waits for a GPU. A flag on the device says whether losses and gradients are finite. The
  optimiser takes it as `found_inf`, so that this and later steps change nothing. The flag is read
  before anything is saved.
- In float16 the loss is scaled (GradScaler), and a step whose gradients overflow is skipped.
- Several processes (distributed.py) share the pairs of a step and end it with the same weights.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from ems.base.errors import EmsError, mistake
from ems.base.files import write_json
from ems.config.train import TrainSettings
from ems.model.devices import Adam
from ems.model.objectives.system import DeviceBatch, System
from ems.shards.reader import Batch, PairStore
from ems.train.distributed import GradientSum, World, dropout_seed
from ems.train.memory import GradCache

T = TypeVar("T")
AHEAD = 3  # batches to draw in advance, at most
NORM = "gradient norm"
LEAST_SCALE = 1e-4  # smallest scale of the loss; fairseq's --min-loss-scale
SHOWN = 3  # pairs of a bad batch in the message; the file has all


class Trainer:
    """A system with its optimiser and the pairs to train on (EMS v2 section IV-C)."""

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
        self.pairs = settings.batch_pairs  # in a step; this process has a `share`
        self.share = world.share(self.pairs)
        self.gradients = GradientSum(system.parameters(), world)
        system.encoder.checkpoint_layers = settings.checkpoint_layers
        if settings.compile:
            system.encoder.compile_layers()
        for name, objective in system.objectives.items():
            if settings.grad_cache and objective.states:
                raise mistake("states for gradients", name=name)
        tables = [] if system.encoder.table is None else [*system.encoder.table.parameters()]
        others = [own for own in system.parameters() if all(own is not each for each in tables)]
        rates = (others, 1.0), (tables, settings.table_rate)
        groups = [{"params": part, "times": times} for part, times in rates if part]
        decay = settings.weight_decay
        self.optimizer = Adam(groups, weight_decay=decay, amsgrad=settings.amsgrad, fused=True)
        self.scaler = torch.amp.GradScaler(device.type, enabled=settings.precision == "float16")
        self.guard = Guard(device, skips=self.scaler.is_enabled())
        self.waits = device.type == "cpu"  # True: the loss of each step is read

    def batches(self, start: int) -> Iterator[Batch]:
        """Yield the batches from step `start` on, drawn in advance if a core is free for that."""
        alone = self.device.type == "cpu" and self.settings.threads == 1
        return prefetch(self.draw, range(start, self.settings.steps), 0 if alone else AHEAD)

    def draw(self, step: int) -> Batch:
        """Draw this process's share of the batch of a step."""
        alpha = self.settings.sampling_alpha
        batch = self.store.draw(self.seed, step, self.pairs, alpha, self.share)
        return self.system.prepared(batch, self.seed, step, self.share.start, self.pairs)

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Train on the batch of a step; return the losses and `total` over all processes."""
        self.optimizer.zero_grad(set_to_none=True)
        parts = self.backward(DeviceBatch.copy(batch, self.device, self.share.start, self.pairs))
        self.gradients.finish()
        self.scaler.unscale_(self.optimizer)
        parts = self.world.sums(parts)
        self.update(batch.step, parts)
        return parts

    def backward(self, batch: DeviceBatch) -> dict[str, Tensor]:
        """Return the losses of this process's pairs; add the gradient of their weighted `total`."""
        seed = partial(dropout_seed, self.seed, batch.step, self.world.rank)
        torch.manual_seed(seed())
        if not self.settings.grad_cache:
            parts = self.system(batch)
            self.scaler.scale(parts["total"]).backward()
            return parts
        packed, count = (batch.inputs, batch.lengths), self.settings.grad_cache
        cache = GradCache(lambda *part: self.system.encode(*part)[1], *packed, count, seed)
        with torch.no_grad():
            vectors = cache.vectors()  # (2B, d)
        parts = self.system.losses(batch, None, vectors.requires_grad_())
        with self.gradients.paused():  # each parameter has several backward passes
            self.scaler.scale(parts["total"]).backward()
            cache.backward(vectors.grad)
        return parts

    def update(self, step: int, parts: dict[str, Tensor]) -> None:
        """Step the optimiser, unless a loss or gradient of this or an earlier step is bad."""
        self.optimizer.found_inf = self.guard.look(step, parts, self.system.parameters())
        if self.waits:
            self.check_finite()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(step, self.settings) * group["times"]
        self.optimizer.step()
        if self.scaler.is_enabled():
            self.scaler.update()

    def check_finite(self) -> None:
        """Wait for the device; raise `EmsError` if a loss or gradient was not finite."""
        if bad := self.guard.first_bad():
            step, values = bad
            problem = f"the loss of step {step} is not finite"
            if self.world.leads:
                problem += f" {self._write_bad_batch(step, values)}"
            raise self._diverged(problem)
        if self.scaler.is_enabled() and self.scaler.get_scale() < LEAST_SCALE:
            raise self._diverged("the gradients overflow float16 even at the smallest loss scale")

    def scaling(self) -> dict[str, float]:
        """Return the state of float16's loss scaling and the steps `skipped`, else {}. Waits."""
        state = self.scaler.state_dict()
        return {**state, "skipped": int(self.guard.skipped)} if state else {}

    def set_scaling(self, state: dict[str, float]) -> None:
        if state:
            self.scaler.load_state_dict(state)
            self.guard.skipped.fill_(state["skipped"])

    def check_weights(self, done: int) -> None:
        """Raise `EmsError` if the last step, though its loss was finite, spoilt a weight."""
        for name, value in self.system.named_parameters():
            if not torch.isfinite(value).all():
                raise self._diverged(f"the weights {name} are not finite after {done} steps")

    def _diverged(self, problem: str) -> EmsError:
        return mistake("diverged", problem=problem, state=self.state)

    def _write_bad_batch(self, step: int, values: dict[str, float]) -> str:
        """Write the values of a bad step and the origin of its pairs; return both as text."""
        alpha, pairs = self.settings.sampling_alpha, []
        drawn = self.store.draw_indices(self.seed, step, self.pairs, alpha)
        for shard, row in self.store.places(*drawn):
            corpus, version, pair = shard.folder.resolve().parts[-4:-1]
            origin = {"corpus": corpus, "version": version, "pair": pair}
            origin["line"] = int(shard.lines[row])
            pairs.append({**origin, "shard": str(shard.folder), "row": row})
        path = self.state / f"bad-batch-{step}.json"
        texts = {name: str(value) for name, value in values.items()}  # JSON has no NaN
        write_json(path, {"values": texts, "pairs": pairs})
        parts = ", ".join(f"{name} {value:.6g}" for name, value in values.items())
        place = "{corpus} {version} {pair} line {line:,}"
        few = "; ".join(place.format(**pair) for pair in pairs[:SHOWN])
        more = " ..." if len(pairs) > SHOWN else ""
        return f"({parts}); its pairs: {few}{more} (all {len(pairs)}: {path})"


class Guard:
    """Remembers the first step whose loss or gradient was not finite, and its values."""

    def __init__(self, device: torch.device, skips: bool = False) -> None:
        self.skips = skips  # True: skip a step with a finite loss and an overflowing gradient
        self.skipped = torch.zeros((), dtype=torch.int64, device=device)
        self.first = torch.full((), -1, dtype=torch.int64, device=device)
        self.names: list[str] = []
        self.values: Tensor | None = None

    @torch.no_grad()
    def look(self, step: int, parts: dict[str, Tensor], parameters: Iterable[Tensor]) -> Tensor:
        """Return 1.0, on the device, if this or an earlier step is bad or this one is skipped."""
        norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        self.names = [*parts, NORM]
        values = torch.stack([*(part.detach().float() for part in parts.values()), norm.float()])
        losses = torch.isfinite(values[:-1]).all()
        overflow = losses & ~torch.isfinite(values[-1]) & self.skips
        self.skipped += overflow
        bad = (self.first < 0) & ~torch.isfinite(values).all() & ~overflow
        self.values = values if self.values is None else torch.where(bad, values, self.values)
        self.first = torch.where(bad, step, self.first)
        return ((self.first >= 0) | overflow).float()

    def first_bad(self) -> tuple[int, dict[str, float]] | None:
        """Wait for the device; return (step, values) of the first bad step, or None."""
        step = int(self.first)
        if step < 0 or self.values is None:
            return None
        return step, dict(zip(self.names, self.values.tolist(), strict=True))


def learning_rate(step: int, settings: TrainSettings) -> float:
    """Return the rate of `step` (from 0): linear warm-up, then constant or falling. The paper has a
    warm-up (EMS v2 IV-C) and no decay: `constant`. `linear` falls from the end of the warm-up,
    `cosine` is the authors' code; both reach 0 at `schedule_steps` (default: `steps`). `step`, the
    code of Lightweight, multiplies the rate by `schedule_factor` from that step on.
    """
    peak, warmup, schedule = settings.learning_rate, settings.warmup_steps, settings.schedule
    period = settings.schedule_steps or settings.steps
    rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
    if schedule == "step":
        return peak * rise * (settings.schedule_factor if step >= period else 1)
    if schedule == "cosine":
        return peak * rise * 0.5 * (1 + math.cos(math.pi * min(step, period) / period))
    if schedule == "constant" or step < warmup:
        return peak * rise
    return peak * max(0.0, (period - step) / max(1, period - warmup))


def prefetch(draw: Callable[[int], T], steps: Iterable[int], ahead: int = AHEAD) -> Iterator[T]:
    """Yield `draw(step)` for each step; a thread draws up to `ahead` in advance (0: no thread)."""
    if not ahead:
        yield from map(draw, steps)
        return
    pool = ThreadPoolExecutor(1, "batches")
    waiting: deque[Future[T]] = deque()
    try:
        for step in steps:
            waiting.append(pool.submit(draw, step))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
