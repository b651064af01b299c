"""Validation: loss parts and P@1 on held-out pairs, in eval mode, without randomness."""

from collections import defaultdict
from itertools import islice

import numpy as np
import torch

from ems.bench.retrieval import normalised, precision_at_1
from ems.model.encoder import embed_tokens
from ems.model.objectives.system import DeviceBatch, System
from ems.shards.reader import PairStore
from ems.train.distributed import World
from ems.train.measures import BY_CORPUS, BY_LANGUAGE, LogRow

PAIRS = "pairs"  # key of the number of pairs, next to the sums of losses
MOST = 1000  # first pairs to use of each corpus and language pair


@torch.no_grad()
def validate(
    system: System, store: PairStore, batch_pairs: int, world: World | None = None
) -> LogRow:
    """Return the mean losses over all pairs, `p1`, `p1_by_language` and `p1_by_corpus`.

    P@1 (%) is the mean of both directions, over MOST pairs of each corpus and language pair. `p1`
    is the mean over corpora (`p1_by_corpus`, if there are several) of the mean over language pairs,
    which are named without English ("de", or "de-fr"). Documents have no P@1; a system that learns
    from documents has no losses on pairs. Several processes share the work.
    """
    world = world or World()
    stores = {"": store} if store.documents else store.by_corpus()
    corpora = [] if store.documents else stores.items()
    searches = [(name, pair, at) for name, own in corpora for at, pair in enumerate(own.groups)]
    system.eval()
    learnt = system.settings.documents == store.documents
    size = system.negatives or batch_pairs
    sums = _sums(system, list(stores.values()), size, world) if learnt else {}
    scores = [
        _p1(system, stores[name], group) if number % world.size == world.rank else 0.0
        for number, (name, _, group) in enumerate(searches)
    ]
    values = torch.tensor([*sums.values(), *scores], dtype=torch.float64)
    values = world.sum(values.to(system.encoder.device)).tolist()
    system.train()
    totals, scores = values[: len(sums)], values[len(sums) :]
    losses = {name: total / totals[-1] for name, total in zip(sums, totals, strict=True)}
    losses.pop(PAIRS, None)
    return losses if store.documents else losses | _means(searches, scores)


def _means(searches: list[tuple[str, tuple[str, ...], int]], scores: list[float]) -> LogRow:
    by_corpus, by_pair = defaultdict(list), defaultdict(list)
    for (corpus, pair, _), score in zip(searches, scores, strict=True):
        by_corpus[corpus].append(score)
        by_pair[pair].append(score)
    corpora = {name: float(np.mean(own)) for name, own in by_corpus.items()}
    names = {pair: "-".join(code for code in pair if code != "en") for pair in sorted(by_pair)}
    languages = {name: float(np.mean(by_pair[pair])) for pair, name in names.items()}
    several = {BY_CORPUS: corpora} if len(corpora) > 1 else {}
    return {"p1": float(np.mean(list(corpora.values()))), BY_LANGUAGE: languages, **several}


def _sums(system: System, stores: list[PairStore], size: int, world: World) -> dict[str, float]:
    """Sum each loss over the pairs of this process; the last value is the number of pairs."""
    device = system.encoder.device
    sums = dict.fromkeys([*system.parts, PAIRS], 0.0)
    limit = None if stores[0].documents else MOST
    batches = ((own, at) for own in stores for at in own.places_in_order(size, limit))
    own_batches = islice(batches, world.rank, None, world.size)
    for number, (store, places) in enumerate(own_batches):
        # seed 0: masks are the same in each validation
        batch = system.prepared(store.assemble(*places), 0, world.rank + number * world.size)
        for name, value in system(DeviceBatch.copy(batch, device)).items():
            sums[name] += float(value) * batch.pairs
        sums[PAIRS] += batch.pairs
    return sums


def _p1(system: System, store: PairStore, group: int) -> float:
    count = min(int(store.sizes[group]), MOST)
    batch = store.assemble(np.full(count, group), np.arange(count))
    sentences = np.split(batch.tokens, np.cumsum(batch.lengths)[:-1])
    vectors = np.empty((2 * count, system.encoder.settings.pooled_width), np.float32)
    vectors[batch.rows] = embed_tokens(system.encoder, sentences)
    first, second = np.split(normalised(vectors, "validation"), 2)
    return (precision_at_1(first, second) + precision_at_1(second, first)) / 2
