"""Systems of small sizes, batches by hand, and how far two gradients are apart."""

import numpy as np
import torch

from ems.config.model import EncoderSettings
from ems.config.objectives import Objectives
from ems.config.systems import SystemSettings
from ems.config.train import TrainSettings
from ems.model.objectives.system import System
from ems.shards.reader import Batch


def system_settings(model, objectives, train=None):
    """What `System` takes: the three parts of a system, complete."""
    return SystemSettings(
        model=EncoderSettings(**model),
        objectives=Objectives(**objectives),
        train=TrainSettings(**{"steps": 1} | (train or {})),
    )


def noisy_system(settings, languages, pieces, noise=0.4):
    """A float64 system in which no weight is at a neutral start value."""
    torch.manual_seed(4)
    system = System(settings, languages, pieces).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for value in system.parameters():
            drawn = torch.randn(value.shape, dtype=torch.float64, generator=generator)
            value.add_(noise * drawn)
    return system


def weights_of(system):
    """Its weights as leaves of another graph, by name."""
    return {n: p.detach().clone().requires_grad_() for n, p in system.named_parameters()}


def batch_of(rows):
    """Sentences by row as a `Batch`: shortest first, ties by row. What is hidden comes in the order
    of the pairs where each has one token of it.
    """
    order = sorted(range(len(rows)), key=lambda row: (len(rows[row]["tokens"]), row))
    lengths = np.array([len(rows[row]["tokens"]) for row in order])
    starts = dict(zip(order, np.cumsum(lengths) - lengths, strict=True))
    hidden = [(row, at) for row in order for at in sorted(rows[row].get("hidden", ()))]
    pairs = len(rows) // 2
    if len(hidden) == pairs:
        hidden.sort(key=lambda place: place[0] % pairs)
    return Batch(
        np.concatenate([rows[row]["tokens"] for row in order]),
        lengths,
        np.array(order),
        np.array([sentence["language"] for sentence in rows]),
        inputs=np.concatenate([rows[row]["input"] for row in order]),
        places=np.array([starts[row] + at for row, at in hidden], dtype=np.int64),
    )


def gradients(loss, weights):
    """(loss, gradient by name; zero where there is none)."""
    loss.backward()
    weights = dict(weights)
    zeros = {name: torch.zeros_like(w) for name, w in weights.items()}
    return loss.item(), {n: zeros[n] if w.grad is None else w.grad for n, w in weights.items()}


def differences(first, second):
    """The largest difference of two losses, and of each weight's gradients."""
    (loss, one), (other_loss, other) = first, second
    assert one.keys() == other.keys()
    return {"loss": abs(loss - other_loss)} | {
        name: (one[name] - other[name]).abs().max().item() for name in one
    }
