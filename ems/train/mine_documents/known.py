"""How many mined pairs are right, where that is known: translations hidden among other sentences.

The pairs of the validation corpus, which nothing is trained on, are put among the sentences of the
first round of their languages, and the same search mines there. The report has the share of
translations among the pairs with a hidden sentence, and the share among pairs drawn at random.
"""

from collections.abc import Collection, Iterator

import numpy as np

from ems.base.schema import Json
from ems.bench.csls import Pairs, best_pairs
from ems.shards.reader import PairStore

HIDDEN = 1000  # translations of two languages, at most: as many as Tatoeba has of most
Tokens = list[np.ndarray]


def translations(store: PairStore | None, first: str, second: str) -> tuple[Tokens, Tokens]:
    """Return the tokens of up to HIDDEN sentences in two languages, translations of one another.

    Of two languages that no pair has these are sentences with the same translation into a third
    one, English if it can be. There are none without a `store`.
    """
    pairs = {group: at for at, group in enumerate(store.groups)} if store else {}
    if tuple(sorted((first, second))) in pairs:
        known = list(_sides(store, first, second))[:HIDDEN]
    elif pivot := _pivot(pairs, first, second):
        shared = {text.tobytes(): own for text, own in _sides(store, pivot, second)}
        both = ((own, shared.get(text.tobytes())) for text, own in _sides(store, pivot, first))
        known = [(own, other) for own, other in both if other is not None][:HIDDEN]
    else:
        known = []
    return [own for own, _ in known], [other for _, other in known]


def _pivot(pairs: Collection[tuple[str, ...]], first: str, second: str) -> str:
    """Return a language that has pairs with both, English if it does; "" for none."""
    for code in dict.fromkeys(["en", *(code for pair in pairs for code in pair)]):
        if all(tuple(sorted((side, code))) in pairs for side in (first, second)):
            return code
    return ""


def _sides(store: PairStore, first: str, second: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the tokens of every pair of two languages."""
    pair = tuple(sorted((first, second)))
    group = list(store.groups).index(pair)
    for at in range(int(store.sizes[group])):
        ((shard, row),) = store.places(np.array([group]), np.array([at]))
        one, other = (
            shard.piece(shard.languages.index(code), row, store.max_tokens)
            for code in (first, second)
        )
        yield one, other


def share_right(
    hidden: tuple[np.ndarray, np.ndarray],
    others: tuple[np.ndarray, np.ndarray],
    keep: int,
    k: int,
    device: str,
) -> Json:
    """Mine among `hidden`[T, d], translations row by row, and `others`[m, d] of the two languages.

    Of the pairs with a hidden sentence (`known`), `right` are translations: `share` percent, where
    pairs drawn at random have `chance` percent.
    """
    pools = [np.concatenate([own, more]) for own, more in zip(hidden, others, strict=True)]
    pairs = best_pairs(*pools, keep, k, device)
    count = len(hidden[0])
    known, right = _counted(pairs, count)
    of_all = len(pools[0]) * len(pools[1]) - len(others[0]) * len(others[1])
    return {
        "hidden": count,
        "among": [len(pool) for pool in pools],
        "known": known,
        "right": right,
        "share": 100 * right / known if known else None,
        "chance": 100 * count / of_all,
    }


def _counted(pairs: Pairs, hidden: int) -> tuple[int, int]:
    known = (pairs.first < hidden) | (pairs.second < hidden)
    right = known & (pairs.first == pairs.second)
    return int(known.sum()), int(right.sum())
