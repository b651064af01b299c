"""Validation: loss parts and P@1 on held-out pairs, in eval mode, without randomness."""

import numpy as np
import torch

from ems.model.embed import embed_tokens
from ems.retrieval import normalised, precision_at_1
from ems.shards.reader import PairStore
from ems.train.step import DeviceBatch, System

P1_PAIRS = 1000  # pairs of a language pair that are searched for P@1


@torch.no_grad()
def validate(system: System, store: PairStore, batch_pairs: int) -> dict[str, float]:
    """Mean loss parts over all pairs, and `p1`: mean P@1 (percent) over language pairs and
    directions.

    The contrastive part depends on `batch_pairs`, as in training; batches hold one language pair
    here.
    """
    system.eval()
    device = system.encoder.tokens.weight.device
    sums: dict[str, float] = {}
    count = 0
    for at, batch in enumerate(store.in_order(batch_pairs)):
        batch = system.prepared(batch, 0, at)  # masks are the same in each validation
        for name, value in system(DeviceBatch.of(batch, device)).items():
            sums[name] = sums.get(name, 0.0) + float(value) * batch.pairs
        count += batch.pairs
    losses = {name: value / count for name, value in sums.items()}
    scores = [_p1(system, store, group) for group in range(len(store.sizes))]
    system.train()
    return {**losses, "p1": float(np.mean(scores))}


def _p1(system: System, store: PairStore, group: int) -> float:
    """P@1 of one language pair, the mean of both directions."""
    count = min(int(store.sizes[group]), P1_PAIRS)
    batch = store.assemble(np.full(count, group), np.arange(count))
    sentences = np.split(batch.tokens, np.cumsum(batch.lengths)[:-1])
    vectors = np.empty((2 * count, system.encoder.settings.width), np.float32)
    vectors[batch.rows] = embed_tokens(system.encoder, sentences)
    first, second = np.split(normalised(vectors, "validation"), 2)
    return (precision_at_1(first, second) + precision_at_1(second, first)) / 2
