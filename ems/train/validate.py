"""Validation: loss parts and P@1 on held-out pairs, in eval mode, without randomness."""

from typing import Any

import numpy as np
import torch

from ems.model.embed import embed_tokens
from ems.retrieval import normalised, precision_at_1
from ems.shards.reader import PairStore
from ems.train.step import DeviceBatch, System

ENGLISH = "en"
P1_PAIRS = 1000  # pairs of a language pair that are searched for P@1


@torch.no_grad()
def validate(system: System, store: PairStore, batch_pairs: int) -> dict[str, Any]:
    """Mean loss parts over all pairs; `p1_by_language`: P@1 (percent, mean of both directions) of
    each language pair, by its language that is not English; and `p1`, the mean of these.

    The contrastive part depends on `batch_pairs`, as in training; batches hold one language pair
    here.
    """
    system.eval()
    device = system.encoder.tokens.weight.device
    sums: dict[str, float] = {}
    count = 0
    for batch in store.in_order(batch_pairs):
        for name, value in system(DeviceBatch.of(batch, device)).items():
            sums[name] = sums.get(name, 0.0) + float(value) * batch.pairs
        count += batch.pairs
    losses = {name: value / count for name, value in sums.items()}
    scores = {_other(pair): _p1(system, store, at) for at, pair in enumerate(store.groups)}
    system.train()
    return {**losses, "p1": float(np.mean(list(scores.values()))), "p1_by_language": scores}


def _other(pair: tuple[str, ...]) -> str:
    """The language of a pair with English, "de"; of another pair both, "de-fr"."""
    return "-".join(code for code in pair if code != ENGLISH)


def _p1(system: System, store: PairStore, group: int) -> float:
    """P@1 of one language pair, the mean of both directions."""
    count = min(int(store.sizes[group]), P1_PAIRS)
    batch = store.assemble(np.full(count, group), np.arange(count))
    sentences = np.split(batch.tokens, np.cumsum(batch.lengths)[:-1])
    vectors = np.empty((2 * count, system.encoder.settings.width), np.float32)
    vectors[batch.rows] = embed_tokens(system.encoder, sentences)
    first, second = np.split(normalised(vectors, "validation"), 2)
    return (precision_at_1(first, second) + precision_at_1(second, first)) / 2
