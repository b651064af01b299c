"""Retrieval among 200,000 sentences: P@1 of 2,000 queries, both directions, on ParaCrawl (EMS v2
section V-D, Table X, margin) and on Europarl (Lightweight section 4.4, Table 4, cosine).

Notable choices:
- sentences are drawn as MUSE's sent_translation.py does, whose settings the Lightweight code names:
  no sentence twice on either side (in lower case), shuffled, the first `candidates` pairs; of these
  `queries` by RandomState(seed), the same in both directions;
- the shuffle is by a seeded hash of each pair, so that the 51 million pairs of a language are
  streamed and only the first of the shuffled are kept; it does not depend on the order of the file;
- margin: the neighbours of a candidate are queries, as in MUSE's CSLS; all candidates are scored;
- encoders get the sentences as they are; MUSE's word vectors are of lower case.
Source: https://github.com/facebookresearch/MUSE, src/evaluation/sent_translation.py.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b

import numpy as np

from ems.bench.both_ways import Hits, score_both_ways
from ems.bench.embedded import embedded
from ems.bench.margin import best_candidates
from ems.bench.task import Task
from ems.benchmarks.paracrawl.data import count, file_names, read_language
from ems.errors import EmsError
from ems.scores import Result
from ems.settings import plain

Pair = tuple[str, str]


def score(task: Task) -> Result:
    """Return P@1 of each language that the system has."""
    return score_both_ways(task, partial(_hits, task), protocol=plain(task.evalset.protocol))


def _hits(task: Task, code: str, language: str) -> Hits:
    how, where = task.evalset.protocol, f"{task.benchmark} {code}"
    pairs = _candidates(task, code)
    asked = np.random.RandomState(how.seed).choice(len(pairs), how.queries, replace=False)
    foreign = embedded(task, [one for one, _ in pairs], language, where)
    english = embedded(task, [other for _, other in pairs], "en", f"{where}, English")
    search = partial(best_candidates, k=how.k, margin=how.margin)
    return search(foreign[asked], english) == asked, search(english[asked], foreign) == asked


def _candidates(task: Task, code: str) -> list[Pair]:
    how = task.evalset.protocol
    where = (task.folder, code, task.record.corpus)
    count(*where)  # refuses a broken archive
    read = partial(read_language, *where)
    pairs = draw(read, how.candidates, how.seed)
    if len(pairs) < how.candidates:
        raise EmsError(
            f"{task.folder / file_names(code)[0]}: expected at least {how.candidates:,} pairs "
            f"without a sentence that is there twice, found {len(pairs):,}; lower "
            f"evalsets.{task.benchmark}.protocol.candidates, or leave the language out"
        )
    return pairs


def draw(read: Callable[[], Iterable[Pair]], many: int, seed: int) -> list[Pair]:
    """The first `many` pairs in the order of a seeded hash, without those of which one sentence is
    in a pair before; fewer where there are no more. `read` gives all pairs, each time it is called.
    """
    pool = many + many // 4
    while True:
        first = heapq.nsmallest(pool, _shuffled(read(), seed))
        drawn = list(_each_once(pair for _, *pair in first))[:many]
        if len(drawn) == many or len(first) < pool:
            return drawn
        pool *= 4  # so many sentences are there twice


def _shuffled(pairs: Iterable[Pair], seed: int) -> Iterator[tuple[bytes, str, str]]:
    """Each pair without an empty side, after its seeded hash."""
    key = str(seed).encode()
    for one, other in pairs:
        if one.strip() and other.strip():
            yield blake2b(f"{one}\t{other}".encode(), digest_size=8, key=key).digest(), one, other


def _each_once(pairs: Iterable[list[str]]) -> Iterator[Pair]:
    """The pairs of which neither sentence is in one before, whatever the case."""
    seen: tuple[set[str], set[str]] = (set(), set())
    for one, other in pairs:
        lowered = one.lower(), other.lower()
        if lowered[0] not in seen[0] and lowered[1] not in seen[1]:
            seen[0].add(lowered[0])
            seen[1].add(lowered[1])
            yield one, other
