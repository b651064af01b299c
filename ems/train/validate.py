"""Validation: loss parts and P@1 on held-out pairs, in eval mode, without randomness."""

import numpy as np
import torch

from ems.model.embed import embed_tokens
from ems.objectives.batch import DeviceBatch
from ems.objectives.system import System
from ems.retrieval import normalised, precision_at_1
from ems.shards.reader import PairStore
from ems.train.distributed import World
from ems.train.scalars import BY_LANGUAGE, LogRow

PAIRS = "pairs"  # beside the sums of the losses: their number
P1_PAIRS = 1000  # pairs of a language pair that are searched for P@1


@torch.no_grad()
def validate(
    system: System, store: PairStore, batch_pairs: int, world: World | None = None
) -> LogRow:
    """Return the mean loss parts over all pairs, `p1` and `p1_by_language`.

    P@1 is a percentage, the mean of both directions, keyed by the language that is not English
    ("de", or "de-fr"); `p1` is the mean over language pairs. Documents have no P@1, and pairs have
    no losses of a system that learns from documents. The contrastive part depends on the pairs of a
    batch, which are of one language pair here. Several processes share batches and language pairs,
    and all return the same.
    """
    world = world or World()
    groups = () if store.documents else range(len(store.sizes))
    own = groups[world.rank :: world.size]
    system.eval()
    learnt = system.settings.documents == store.documents
    sums = _sums(system, store, system.negatives or batch_pairs, world) if learnt else {}
    scores = [_p1(system, store, at) if at in own else 0.0 for at in groups]
    values = torch.tensor([*sums.values(), *scores], dtype=torch.float64)
    values = world.sum(values.to(system.encoder.device)).tolist()
    system.train()
    totals, scores = values[: len(sums)], values[len(sums) :]
    losses = {name: total / totals[-1] for name, total in zip(sums, totals, strict=True)}
    losses.pop(PAIRS, None)
    if store.documents:
        return losses
    names = ["-".join(code for code in pair if code != "en") for pair in store.groups]
    by_language = dict(zip(names, scores, strict=True))
    p1 = float(np.mean(list(by_language.values())))
    return {**losses, "p1": p1, BY_LANGUAGE: by_language}


def _sums(system: System, store: PairStore, batch_pairs: int, world: World) -> dict[str, float]:
    """Sum each loss part over the pairs of this process; the last value is their number."""
    device = system.encoder.device
    sums = dict.fromkeys([*system.parts, PAIRS], 0.0)
    for at, batch in enumerate(store.in_order(batch_pairs, world.rank, world.size)):
        # masks are the same in each validation
        batch = system.prepared(batch, 0, world.rank + at * world.size)
        for name, value in system(DeviceBatch.of(batch, device)).items():
            sums[name] += float(value) * batch.pairs
        sums[PAIRS] += batch.pairs
    return sums


def _p1(system: System, store: PairStore, group: int) -> float:
    """Return P@1 of one language pair, the mean of both directions."""
    count = min(int(store.sizes[group]), P1_PAIRS)
    batch = store.assemble(np.full(count, group), np.arange(count))
    sentences = np.split(batch.tokens, np.cumsum(batch.lengths)[:-1])
    vectors = np.empty((2 * count, system.encoder.settings.pooled_width), np.float32)
    vectors[batch.rows] = embed_tokens(system.encoder, sentences)
    first, second = np.split(normalised(vectors, "validation"), 2)
    return (precision_at_1(first, second) + precision_at_1(second, first)) / 2
