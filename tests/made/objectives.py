"""Small systems, batches, and the devices that laws run on."""

import numpy as np
import torch

from ems.config.model import EncoderSettings
from ems.config.objectives import Objectives
from ems.config.systems import SystemSettings
from ems.config.train import TrainSettings
from ems.model.objectives.system import System
from ems.shards.reader import Batch

DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]
STILL = {"dropout": 0.0, "attention_dropout": 0.0}
SIZES = {**STILL, "layers": 2, "width": 64, "heads": 4, "feed_forward": 128}
TABLE = {"table": 48, "ngrams": 500}
PLAIN = {"contrastive": {"width": 0}}  # no MLP
NO_XTR = {"xtr": {"weight": 0}}
OBJECTIVES = {
    "EMS": {},
    "without an MLP": PLAIN,
    "a margin alone": {**NO_XTR, "contrastive": {"width": 0, "margin": 0.3}},
    "distinct": {"xtr": {"target": "distinct"}, "contrastive": {"width": 0, "negatives": 8}},
    "sampled": {"xtr": {"sampled": 50}, **PLAIN},
    "UGT": {**NO_XTR, "ugt": {"weight": 1}, "contrastive": {"width": 0, "mask_duplicates": True}},
    "Lightweight": {
        **NO_XTR,
        "contrastive": {"weight": 0},
        **{name: {"weight": 1} for name in ("smlm", "align", "similarity")},
    },
    "MLM": {"mlm": {"weight": 1}, **PLAIN},
    "prefixes": {"matryoshka": {"weight": 1, "dimensions": [8, 32]}, **PLAIN},
}
# our recipe (`ems-plus` of small62), and the same vectors and layers
PLUS = {
    **NO_XTR,
    "contrastive": {"width": 0, "temperature": 0.05, "margin": 0.4, "mask_duplicates": True},
}
SYSTEMS = {name: ({}, objectives) for name, objectives in OBJECTIVES.items()}
SYSTEMS |= {"a table": ({**TABLE, "layers": 0}, PLUS), "a table and layers": (TABLE, PLUS)}


def system_settings(model, objectives, train=None):
    """The three parts of a system, complete, as `System` takes them."""
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
            value.add_(noise * torch.randn(value.shape, dtype=value.dtype, generator=generator))
    return system


def weights_of(system):
    return {n: p.detach().clone().requires_grad_() for n, p in system.named_parameters()}


def batch_of(rows):
    """Sentences by row as a `Batch`: shortest first, ties by row.

    Hidden tokens are in the order of the pairs if each pair has one.
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
