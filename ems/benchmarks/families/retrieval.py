"""Retrieval: P@1 of each language, in both directions with English.

A set of translations is searched as a whole, by cosine (EMS v2 section V-A). A record with `drawn`
searches for 2,000 queries among 200,000 candidates of a corpus (EMS v2 section V-D, Table X;
Lightweight section 4.4, Table 4). Pairs are drawn as in MUSE's sent_translation.py
(https://github.com/facebookresearch/MUSE): shuffled, without repeated sentences on either side (in
lower case), the same queries for both directions. Sorting by a seeded hash shuffles 51 million
pairs as a stream, independently of their order.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b

import numpy as np

from ems.base.errors import mistake
from ems.base.progress import Progress
from ems.bench.margin import best_candidates
from ems.bench.retrieval import nearest_is_own
from ems.bench.scores import ENGLISH, Result, Score
from ems.bench.task import Task
from ems.config.plugins import module
from ems.corpora.evalsets.sets import read_bitext

AlignedPair = tuple[str, str]
DirectionHits = tuple[np.ndarray, np.ndarray]  # bool[N] each: to English, from English


def score(task: Task) -> Result:
    drawn = task.record.drawn
    progress = Progress(f"{task.benchmark} {task.system}", len(task.languages), "languages")
    rows: list[Score] = []
    for code in task.languages:
        there, back = _hits_of_drawn(task, code) if drawn else _hits_of_all(task, code)
        rows += [Score.from_hits(code, ENGLISH, there), Score.from_hits(ENGLISH, code, back)]
        progress.add(1, f"{code} {rows[-2].value:.1f}")
    protocol = task.evalset.protocol if drawn else {}
    result = Result("P@1", rows, task.languages, parallel=task.record.parallel, protocol=protocol)
    means = [f"{mean.value:.1f} of {mean.over}" for mean in result.means()]
    progress.close(f"mean P@1 {', '.join(means)}")
    return result


def _hits_of_all(task: Task, code: str) -> DirectionHits:
    where = f"{task.benchmark} {code}"
    foreign, english = read_bitext(task.experiment, task.benchmark, task.folder, code)
    first = task.vectors(foreign, task.languages[code], where)
    second = task.vectors(english, "en", f"{where}, English")
    return nearest_is_own(first, second), nearest_is_own(second, first)


def _hits_of_drawn(task: Task, code: str) -> DirectionHits:
    protocol, data = task.evalset.protocol, module(task.benchmark, "data")
    archive = (task.folder, code, task.record.corpus)
    data.count(*archive)  # raises for a damaged archive
    pairs = draw(partial(data.read_language, *archive), protocol.candidates, protocol.seed)
    if len(pairs) < protocol.candidates:
        path = task.folder / data.file_names(code)[0]
        raise mistake("too few pairs", path=path, task=task, protocol=protocol, found=len(pairs))
    generator = np.random.RandomState(protocol.seed)
    queries = generator.choice(len(pairs), protocol.queries, replace=False)
    where = f"{task.benchmark} {code}"
    foreign = task.embedded([one for one, _ in pairs], task.languages[code], where)
    english = task.embedded([other for _, other in pairs], "en", f"{where}, English")
    search = partial(best_candidates, k=protocol.k, margin=protocol.margin)
    there, back = search(foreign[queries], english), search(english[queries], foreign)
    return there == queries, back == queries


def draw(read: Callable[[], Iterable[AlignedPair]], count: int, seed: int) -> list[AlignedPair]:
    """Return up to `count` pairs of `read()`, which may be called several times: the first by a
    seeded hash, without empty or repeated sentences.
    """
    pool, hash_of = count + count // 4, partial(blake2b, digest_size=8, key=str(seed).encode())
    while True:
        pairs = ((one, other) for one, other in read() if one.strip() and other.strip())
        hashed = ((hash_of("\t".join(pair).encode()).digest(), *pair) for pair in pairs)
        first = heapq.nsmallest(pool, hashed)
        drawn = list(_each_once(pair for _, *pair in first))[:count]
        if len(drawn) == count or len(first) < pool:
            return drawn
        pool *= 4  # too many repeated sentences


def _each_once(pairs: Iterable[list[str]]) -> Iterator[AlignedPair]:
    """Yield pairs whose sentences occur in no earlier pair, ignoring case."""
    seen: tuple[set[str], set[str]] = (set(), set())
    for one, other in pairs:
        lowered = one.lower(), other.lower()
        if lowered[0] not in seen[0] and lowered[1] not in seen[1]:
            seen[0].add(lowered[0])
            seen[1].add(lowered[1])
            yield one, other
