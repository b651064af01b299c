"""WMT24++: P@1 by cosine between every two of 55 languages and regions and English.

Two regions of a language are not searched against each other: 3,070 directions. A candidate is
right if it has the text of the translation, or translates the text of the query: a few short
segments are the same. Trained languages with English also have the P@1 of the segments of a domain
or a length among all candidates, and the errors of margin search (`xsim`), as `measure`.
"""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np

from ems.base.errors import mistake
from ems.base.progress import Progress
from ems.base.schema import plain
from ems.bench.margin import best_by_margin
from ems.bench.scores import ENGLISH, UNSEEN, Result, Score, packed
from ems.bench.task import Task
from ems.benchmarks.wmt24pp.data import read_segments, units
from ems.config.benchmarks import SearchProtocol

KEYS = ("domain", "source", "target")
ENDS = (5, 10, 20, 40, 80)  # words of the English segment
LENGTHS = ("1-5", "6-10", "11-20", "21-40", "41-80", "81 or more")


def score(task: Task) -> Result:
    """Return P@1 of each direction, and by domain and length; names are "de", "pt_BR", "pt_PT"."""
    texts, languages, groups = read_texts(task.folder, task.languages)
    vectors, copies = {}, {}
    for name, lines in texts.items():
        vectors[name] = task.vectors(lines, languages[name], f"{task.benchmark} {name}")
        copies[name] = np.unique(lines, return_inverse=True)[1]
    pairs = [(a, b) for a, b in combinations(texts, 2) if a.split("_")[0] != b.split("_")[0]]
    rows, protocol = [], SearchProtocol()
    progress = Progress(f"{task.benchmark} {task.system}", len(pairs), "language pairs")
    for one, other in pairs:
        cosines = vectors[one] @ vectors[other].T  # [N, N]
        for query, candidates, axis in ((one, other, 1), (other, one, 0)):
            own = right(cosines.argmax(axis=axis), copies[query], copies[candidates])
            percent = 100 * int(own.sum()) / len(own)
            rows.append(Score(query, candidates, percent, len(own), hits=packed(own)))
            sides = {languages[query], languages[candidates]}
            if ENGLISH in sides and UNSEEN not in sides:
                best = best_by_margin(vectors[query], vectors[candidates], **plain(protocol))
                measures = {name: own[members] for name, members in groups.items()}
                measures["xsim"] = ~right(best, copies[query], copies[candidates])
                for name, bits in measures.items():
                    rows.append(Score.from_hits(query, candidates, bits, measure=name))
        progress.add(1)
    progress.close(f"mean P@1 {np.mean([row.value for row in rows if not row.measure]):.1f}")
    return Result("P@1", rows, languages, label="source", parallel=True, protocol=protocol)


def read_texts(
    folder: Path, codes: Mapping[str, str]
) -> tuple[dict[str, list[str]], dict[str, str], dict[str, np.ndarray]]:
    """Return name -> texts[N], name -> language of `codes` (or UNSEEN), and domain or length ->
    bool[N], of the segments that are not bad. Raises `EmsError` if the files differ in English.
    """
    texts, languages, first = {}, {}, None
    for code, language in codes.items():
        names = units(code)
        for name in names:
            path = folder / f"{name}.jsonl"
            domains, *sides = read_segments(path, *KEYS)
            sources, targets = ([" ".join(text.split()) for text in side] for side in sides)
            first = first or (path, sources)
            if sources != first[1]:
                raise mistake("unequal segments", path=path, other=first[0])
            own = name.partition("-")[2] if len(names) > 1 else code
            texts[own] = sources if code == ENGLISH else targets
            languages[own] = language
    places = np.digitize([len(text.split()) for text in sources], ENDS, right=True)
    groups = {name: np.array(domains) == name for name in dict.fromkeys(domains)}
    groups |= {f"{name} words": places == place for place, name in enumerate(LENGTHS)}
    return texts, languages, {name: members for name, members in groups.items() if members.any()}


def right(best: np.ndarray, queries: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return bool[N]: is best[n] the translation of query n, or a copy? Row n translates row n, and
    copies of a text have the same number in `queries` or `candidates`, int64[N].
    """
    return (queries[best] == queries) | (candidates[best] == candidates)
