"""Shards -> batches: memory-mapped, vectorised, a pure function of (seed, step).

Notable choices:
- a batch mixes language pairs: each of its pairs draws its language pair with p ~ n^alpha (n:
  sentence pairs of that language pair over all corpora), then a sentence pair uniformly, with
  replacement;
- the draw of step t is made by a generator keyed with (seed, t), so any step can be made again
  without the steps before it, and nothing as long as an epoch is ever held or shuffled;
- rows are ordered by length, so that attention can work on groups of like length
  (model/packing.py);
- how the pairs of a language pair are cut into shards changes nothing: they are counted through;
- a shard is mapped when a batch first needs it. Python keeps a file open for each map, four a
  shard, so the limit of open files is raised by as many.
"""

import resource
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ems.errors import EmsError
from ems.files import read_json, sha256_file

MAPS = 4  # files of a shard that are open while it is trained on
OTHERS = 64  # files that a process may have open besides


class Shard:
    """One memory-mapped shard folder, sides in the order of their codes. Raises `EmsError` when it
    is not whole.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifest = read_json(folder / "manifest.json")
        self.languages: tuple[str, ...] = tuple(sorted(manifest["languages"]))
        self.pairs: int = manifest["pairs"]
        self.tokens: dict[str, int] = manifest["tokens"]
        self.vocabulary_sha256: str = manifest["vocabulary_sha256"]
        self.sha256: dict[str, str] = manifest["sha256"]
        for code in self.languages:
            self._check(f"{code}.ids", np.uint16, self.tokens[code])
            self._check(f"{code}.offsets", np.int64, self.pairs + 1)
        self._check("lines", np.int64, self.pairs)

    def _check(self, name: str, dtype: type, count: int) -> None:
        path = self.folder / name
        expected = count * np.dtype(dtype).itemsize
        found = path.stat().st_size if path.exists() else 0
        if found != expected:
            raise EmsError(
                f"{path}: expected {expected:,} bytes by its manifest, found {found:,}; "
                f"delete {self.folder} and run again"
            )

    def verify(self) -> None:
        """Read every byte. Raises `EmsError` for a file that is not the one of the manifest."""
        for name, sha256 in self.sha256.items():
            if sha256_file(self.folder / name) != sha256:
                raise EmsError(
                    f"{self.folder / name}: its sha256 is not the one in the manifest beside it; "
                    f"delete {self.folder} and run again"
                )

    @cached_property
    def ids(self) -> list[np.ndarray]:
        """uint16[tokens] of both sides."""
        return [np.memmap(self.folder / f"{code}.ids", np.uint16, "r") for code in self.languages]

    @cached_property
    def offsets(self) -> list[np.ndarray]:
        """int64[pairs + 1] of both sides."""
        return [
            np.memmap(self.folder / f"{code}.offsets", np.int64, "r") for code in self.languages
        ]

    @cached_property
    def lines(self) -> np.ndarray:
        """int64[pairs]: the line of the corpus that each pair comes from, counted from 1."""
        return np.memmap(self.folder / "lines", np.int64, "r")

    def sentence(self, side: int, row: int) -> list[int]:
        """The tokens of one side of one pair."""
        start, end = self.offsets[side][row : row + 2]
        return self.ids[side][start:end].tolist()

    def gather(self, side: int, rows: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
        """(tokens[T], lengths[len(rows)]) of one side of some pairs, each cut to `limit` tokens."""
        starts = self.offsets[side][rows]
        lengths = np.minimum(self.offsets[side][rows + 1] - starts, limit)
        return self.ids[side][spans(starts, lengths)].astype(np.int64), lengths


def spans(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The indices start, start + 1, ... start + length - 1 of every span, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)


def allow_open_files(more: int) -> None:
    """Raise this process's limit of open files by `more`, as far as the hard limit goes.

    Raises `EmsError` when even the hard limit is too low for as many files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and more + OTHERS > hard:
        raise EmsError(
            f"the shards are {more:,} files, but a process may open only {hard:,} here (ulimit "
            "-Hn); have that limit raised, or make the shards again with more pairs each"
        )
    if soft != resource.RLIM_INFINITY:
        wanted = soft + more if hard == resource.RLIM_INFINITY else min(soft + more, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@dataclass
class Batch:
    """B sentence pairs as 2B sentences, packed: no padding anywhere.

    `tokens[T]` are the token ids of all sentences, sentence after sentence, shortest sentence
    first; `lengths[2B]` their lengths in that order; `rows[2B]` says which sentence each is: i < B
    is the first side of pair i, B + i its second side; `languages[2B]` is the language index of
    sentence i (in the order of `rows` values, not of `tokens`).

    Training adds what its objectives need (`ems.train.masking`): `inputs[T]` are the tokens with
    those at `places` masked, `keys[2B]` by row are equal for equal sentences, `step` is its number.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray
    languages: np.ndarray
    inputs: np.ndarray | None = None
    places: np.ndarray | None = None
    keys: np.ndarray | None = None
    step: int = 0

    @property
    def pairs(self) -> int:
        """B, the number of sentence pairs."""
        return len(self.lengths) // 2


class PairStore:
    """All shards of an experiment's training (or validation) data, as one source of batches.

    With a `share` below 1 a language pair is as if it had only so much of its sentence pairs, at
    even distances.
    """

    def __init__(
        self, folders: list[Path], languages: list[str], max_tokens: int, share: float = 1.0
    ) -> None:
        self.shards = [Shard(folder) for folder in folders]
        self.languages = languages
        self.max_tokens = max_tokens
        self.share = share
        vocabularies = {shard.vocabulary_sha256 for shard in self.shards}
        if len(vocabularies) != 1:
            raise EmsError(
                f"{folders[0].parent}: expected shards of one vocabulary, found "
                f"{len(vocabularies)}; run the shards stage again"
            )
        self.vocabulary_sha256 = vocabularies.pop()
        allow_open_files(MAPS * len(self.shards))

    @cached_property
    def groups(self) -> dict[tuple[str, ...], list[int]]:
        """The shards (by index) of each language pair, codes sorted, in a fixed order."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for at, shard in enumerate(self.shards):
            groups.setdefault(shard.languages, []).append(at)
        return dict(sorted(groups.items()))

    @cached_property
    def sizes(self) -> np.ndarray:
        """Sentence pairs of each language pair that are used, int64[groups]."""
        whole = np.array(
            [sum(self.shards[at].pairs for at in shards) for shards in self.groups.values()]
        )
        return np.minimum(whole, np.maximum(1, (whole * self.share).astype(np.int64)))

    def draw(
        self, seed: int, step: int, batch_pairs: int, alpha: float, share: slice = slice(None)
    ) -> Batch:
        """The batch of a training step: a pure function of (seed, step) and of the data.

        `share` are the pairs of one of the processes that share the step.
        """
        chosen, within = self.drawn(seed, step, batch_pairs, alpha)
        return self.assemble(chosen[share], within[share])

    def drawn(
        self, seed: int, step: int, batch_pairs: int, alpha: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which pairs a step takes: the language pair of each and its place in that, int64[B]."""
        random = np.random.Generator(np.random.Philox(key=[seed, step]))
        weights = self.sizes.astype(np.float64) ** alpha
        chosen = random.choice(len(weights), size=batch_pairs, p=weights / weights.sum())
        within = (random.random(batch_pairs) * self.sizes[chosen]).astype(np.int64)
        return chosen, within

    def in_order(self, batch_pairs: int, first: int = 0, every: int = 1) -> Iterator[Batch]:
        """Every pair once, language pair by language pair, for validation; of these batches the
        `first` (from 0) and each `every`-th after it.
        """
        starts = [
            (group, start)
            for group, size in enumerate(self.sizes)
            for start in range(0, int(size), batch_pairs)
        ]
        for group, start in starts[first::every]:
            within = np.arange(start, min(start + batch_pairs, int(self.sizes[group])))
            yield self.assemble(np.full(len(within), group), within)

    def assemble(self, groups: np.ndarray, within: np.ndarray) -> Batch:
        """The batch of pairs `within[i]` of language pair `groups[i]`."""
        count = len(groups)
        shard_of, row_of = self._locate(groups, within)
        tokens, lengths, rows = [], [], []
        languages = np.zeros(2 * count, np.int64)
        for at in np.unique(shard_of):
            members = np.flatnonzero(shard_of == at)
            for side in (0, 1):
                ids, sizes = self.shards[at].gather(side, row_of[members], self.max_tokens)
                tokens.append(ids)
                lengths.append(sizes)
                rows.append(members + side * count)
                code = self.shards[at].languages[side]
                languages[rows[-1]] = self.languages.index(code)
        return _by_length(*map(np.concatenate, (tokens, lengths, rows)), languages)

    def places(self, groups: np.ndarray, within: np.ndarray) -> list[tuple[Shard, int]]:
        """The shard of each pair and its row there."""
        shards, rows = self._locate(groups, within)
        return [(self.shards[at], row) for at, row in zip(shards, rows.tolist(), strict=True)]

    def _locate(self, groups: np.ndarray, within: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(shard, row in it) of each pair, both int64[len(groups)]."""
        shard_of, row_of = np.empty_like(groups), np.empty_like(within)
        within = (within / self.share).astype(np.int64)  # of all pairs: at even distances
        for group, shards in enumerate(self.groups.values()):
            members = np.flatnonzero(groups == group)
            ends = np.cumsum([self.shards[at].pairs for at in shards])
            which = np.searchsorted(ends, within[members], side="right")
            shard_of[members] = np.array(shards)[which]
            row_of[members] = within[members] - np.concatenate([[0], ends])[which]
        return shard_of, row_of


def _by_length(
    tokens: np.ndarray, lengths: np.ndarray, rows: np.ndarray, languages: np.ndarray
) -> Batch:
    """Sentences reordered: by length, ties by row, so that the order depends on the content
    only.
    """
    starts = np.cumsum(lengths) - lengths
    order = np.lexsort((rows, lengths))
    return Batch(
        tokens[spans(starts[order], lengths[order])], lengths[order], rows[order], languages
    )
