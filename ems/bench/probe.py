"""Multilayer perceptrons on frozen features, trained many at a time as one batched problem.

A zero-shot benchmark trains the same small network for each source language, domain and seed (EMS
v2 sections V-E and V-F). Their parameters are stacked, [runs, out, in]. Where the papers are silent
the protocol follows LASER's MLDoc task (sent_classif.py,
https://github.com/facebookresearch/LASER). The first epoch with the best validation score is kept.

A run gives the same bits in any batch of runs: it has its own random streams, and on a CPU each
product is a separate call, since with two threads MKL rounds a batch of products differently. Its
rounding depends on 64-byte alignment too, so batches and layers are padded with zeros.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from ems.base.progress import Progress
from ems.config.benchmarks import ProbeSettings
from ems.model.devices import Adam

EXAMPLES = 4096  # rows classified at once
MOST_PARAMETERS = 1 << 20  # trained at once; above it, steps spend their time allocating memory
STEPS = 1 << 16  # resolution of the dropout rate: 16 random bits for each input of a layer
ALIGNED = 16  # floats: 64 bytes
ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu}

Layers = list[tuple[Tensor, Tensor]]  # weights [R, out, in], biases [R, out]; one run: without R


@dataclass(frozen=True)
class Pool:
    """Examples of some runs; `take` maps rows (int64) to features, float32[*rows.shape, width]."""

    take: Callable[[Tensor], Tensor]
    width: int
    device: torch.device

    @classmethod
    def from_vectors(cls, vectors: Tensor) -> "Pool":
        return cls(vectors.__getitem__, vectors.shape[1], vectors.device)


@dataclass(frozen=True)
class Run:
    """One network to train: its training rows, and the rows that choose its epoch."""

    seed: tuple[int, ...]
    train: range
    valid: range
    weight_decay: float = 0.0


@dataclass(frozen=True)
class Classifier:
    """A trained network of the chosen `epoch` (from 1), with `correct` hits on validation."""

    layers: Layers
    activation: str
    epoch: int
    correct: int
    weight_decay: float

    def predict(self, pool: Pool, rows: range) -> np.ndarray:
        """Return the predicted class of each row, int64[N]."""
        logits = [_plain(each, self.layers, self.activation) for _, each in _blocks(pool, rows)]
        return torch.cat([each.argmax(1) for each in logits]).cpu().numpy()


class Streams:
    """Random streams of one run: start values, order of examples, dropout."""

    def __init__(self, seed: tuple[int, ...]) -> None:
        start, order, dropout = np.random.SeedSequence(seed).spawn(3)
        self.start = np.random.Generator(np.random.PCG64(start))
        self.order = np.random.Generator(np.random.PCG64(order))
        self.dropout = np.random.SFC64(dropout)


def train(
    pool: Pool, labels: Tensor, classes: int, runs: Sequence[Run], probe: ProbeSettings, what: str
) -> list[Classifier]:
    """Train every run; return the network of each one's best epoch. `labels` int64[N] are the
    classes of the pool's rows; `what` names the work in the log. Runs with equally many examples
    are batched, up to MOST_PARAMETERS parameters.
    """
    sizes = [pool.width, *probe.hidden, classes]
    count = max(1, MOST_PARAMETERS // sum((one + 1) * other for one, other in pairwise(sizes)))
    alike = defaultdict(list)
    for number, run in enumerate(runs):
        alike[len(run.train)].append(number)
    classifiers: dict[int, Classifier] = {}
    for numbers in alike.values():
        for start in range(0, len(numbers), count):
            members = numbers[start : start + count]
            progress = Progress(f"{what}, {len(members)} runs", probe.epochs, "epochs")
            batched = _Batched(pool, labels, sizes, [runs[number] for number in members], probe)
            classifiers.update(zip(members, batched.fit(progress), strict=True))
    return [classifiers[number] for number in range(len(runs))]


class _Batched:
    """R runs with equally many examples: their parameters, and the best network of each so far."""

    def __init__(
        self, pool: Pool, labels: Tensor, sizes: list[int], runs: list[Run], probe: ProbeSettings
    ) -> None:
        self.pool, self.labels, self.sizes, self.runs = pool, labels, sizes, runs
        self.probe = probe
        self.streams = [Streams(run.seed) for run in runs]
        self.layers = start_layers(sizes, self.streams, pool.device)
        self.optimiser = Adam(self.layers, lr=probe.learning_rate)
        decay = torch.tensor([run.weight_decay for run in runs], device=pool.device)
        self.decay = decay[:, None, None] if decay.any() else None
        self.best: list[Classifier | None] = [None] * len(runs)

    def fit(self, progress: Progress) -> list[Classifier]:
        """Train until the last epoch, or until no run can improve."""
        count = len(self.runs[0].train)
        both = list(zip(self.runs, self.streams, strict=True))
        for epoch in range(1, self.probe.epochs + 1):
            order = [run.train.start + streams.order.permutation(count) for run, streams in both]
            rows = torch.from_numpy(np.stack(order)).to(self.pool.device)  # [R, N]
            for start in range(0, count, self.probe.batch):
                self._step(rows[:, start : start + self.probe.batch])
            self._choose(epoch)
            progress.add()
            if not any(self._going(at, epoch) for at in range(len(self.runs))):
                break
        progress.close()
        return [best for best in self.best if best]

    def _step(self, rows: Tensor) -> None:
        """Take one optimiser step of every run on its own rows [R, B]."""
        features = self.pool.take(rows)  # [R, B, width]
        dropout = draw_dropout(self.streams, features.shape, self.probe, features.device)
        logits = forward(features, self.layers, self.probe.activation, dropout)  # [R, B, classes]
        # mean over each run's batch, sum over runs: gradients do not mix
        losses = cross_entropy(logits.flatten(0, 1), self.labels[rows].flatten(), reduction="sum")
        self.optimiser.zero_grad()
        (losses / rows.shape[1]).backward()
        for weight in self.layers if self.decay is not None else ():
            weight.grad.add_(weight.detach() * self.decay)
        self.optimiser.step()

    @torch.no_grad()
    def _choose(self, epoch: int) -> None:
        """Keep the parameters of each run that reached its best validation score so far."""
        activation = self.probe.activation
        going = [at for at in range(len(self.runs)) if self._going(at, epoch - 1)]
        correct = dict.fromkeys(going, 0)
        for valid in dict.fromkeys(self.runs[at].valid for at in going):
            members = [at for at in going if self.runs[at].valid == valid]
            for rows, features in _blocks(self.pool, valid):
                for at in members:
                    classes = _plain(features, self._layers(at), activation).argmax(1)
                    correct[at] += int((classes == self.labels[rows]).sum())
        for at, hits in correct.items():
            best = self.best[at]
            if best is None or hits > best.correct:
                layers = [(weight.clone(), bias.clone()) for weight, bias in self._layers(at)]
                decay = self.runs[at].weight_decay
                self.best[at] = Classifier(layers, activation, epoch, hits, decay)

    def _going(self, at: int, epoch: int) -> bool:
        """Return True if a run may still improve; a perfect validation score ends it."""
        best, patience = self.best[at], self.probe.patience
        if best is None:
            return True
        perfect = best.correct == len(self.runs[at].valid)
        return not perfect and not (patience and epoch - best.epoch >= patience)

    def _layers(self, at: int) -> Layers:
        layers = zip(self.layers, self.sizes[:-1], strict=True)
        return [(both[at, :, :size].detach(), both[at, :, size].detach()) for both, size in layers]


def start_layers(sizes: list[int], streams: list[Streams], device: torch.device) -> list[Tensor]:
    """Draw parameters of R runs like `torch.nn.Linear`, [R, out, in']: weights, biases, zeros."""
    layers = []
    for first, second in pairwise(sizes):
        bound, shape = first**-0.5, (second, first + 1)
        drawn = [stream.start.uniform(-bound, bound, shape).astype("float32") for stream in streams]
        both = torch.from_numpy(np.stack(drawn)).to(device)  # [R, out, in + 1]
        layers.append(pad(both, (0, -(first + 1) % ALIGNED)).requires_grad_())
    return layers


def forward(
    features: Tensor, layers: list[Tensor], activation: str, dropout: list[Tensor] | None = None
) -> Tensor:
    """Return logits[R, B, classes] of features[R, B, width], with factors `dropout` [R, B, in]."""
    count, width = features.shape[1:]
    hidden = _inputs(features * dropout[0] if dropout else features, layers[0])
    hidden[:, width] = 1  # for the biases
    for number, weight in enumerate(layers):
        if number:
            width = hidden.shape[1]
            hidden = pad(hidden, (0, 0, 0, weight.shape[2] - width))
            hidden = ACTIVATIONS[activation](hidden)
            hidden = hidden * _inputs(dropout[number], weight) if dropout else hidden
            rows = torch.arange(weight.shape[2], device=hidden.device)
            hidden = hidden + (rows == width)[:, None]
        if features.device.type == "cpu":  # a product for each run
            hidden = torch.stack([one @ own for one, own in zip(weight, hidden, strict=True)])
        else:
            hidden = weight @ hidden  # [R, out, B']
    return hidden[..., :count].transpose(1, 2)


def _inputs(rows: Tensor, weight: Tensor) -> Tensor:
    """Transpose rows [R, B, width] (faster gradients) and pad them to [R, in', B']."""
    count, width = rows.shape[1:]
    padded = rows.new_zeros(len(rows), weight.shape[2], count + -count % ALIGNED)
    padded[:, :width, :count] = rows.transpose(1, 2)
    return padded


def draw_dropout(
    streams: Sequence[Streams], shape: torch.Size, probe: ProbeSettings, device: torch.device
) -> list[Tensor] | None:
    """Return dropout factors of each layer for features [R, B, width]; None if the rate is 0."""
    if not probe.dropout:
        return None
    runs, batch, width = shape
    widths = [width, *probe.hidden]
    limit = min(max(round((1 - probe.dropout) * STEPS), 1), STEPS - 1)
    words = -(-batch * sum(widths) // 4)
    bits = np.stack([stream.dropout.random_raw(words) for stream in streams]).view(np.uint16)
    factors = (bits < limit).astype(np.float32) * np.float32(STEPS / limit)
    tensors, start = [], 0
    for size in widths:
        part = factors[:, start : start + batch * size].reshape(runs, batch, size)
        tensors.append(torch.from_numpy(part).to(device))
        start += batch * size
    return tensors


def _plain(features: Tensor, layers: Layers, activation: str) -> Tensor:
    """Return logits [N, classes] of one run, without dropout."""
    hidden = features
    for number, (weight, bias) in enumerate(layers):
        if number:
            hidden = ACTIVATIONS[activation](hidden)
        hidden = torch.addmm(bias, hidden, weight.T)
    return hidden


def _blocks(pool: Pool, rows: range) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield (row numbers, features), EXAMPLES rows at a time."""
    for start in range(rows.start, rows.stop, EXAMPLES):
        part = torch.arange(start, min(start + EXAMPLES, rows.stop), device=pool.device)
        yield part, pool.take(part)
