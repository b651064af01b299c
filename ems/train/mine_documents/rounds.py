"""The rounds of mining: which languages each compares, and which of their sentences.

The paper samples m x m sentences and keeps the best min(m x m, 1000) pairs, until there are enough.
Where it is silent: all pairs of two languages take turns, and m sentences are drawn without
replacement, the same for the same (seed, round).
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from ems.config.objectives import MiningSettings

STREAM = [0, 0, 0, 3]  # of random numbers, far from those of batches


@dataclass(frozen=True)
class Rounds:
    """The rounds over languages with `sizes` sentences, that `share` of all at even distances."""

    settings: MiningSettings
    sizes: tuple[int, ...]
    seed: int
    share: float = 1.0

    @cached_property
    def turns(self) -> list[tuple[int, int]]:
        """The pairs of languages, in the order in which they take turns."""
        return list(combinations(range(len(self.sizes)), 2))

    def languages(self, at: int) -> tuple[int, int]:
        """Return the two languages that round `at` compares."""
        return self.turns[at % len(self.turns)]

    def kept(self, at: int) -> int:
        """Return how many pairs round `at` gives."""
        first, second = (min(self.settings.sample, self.sizes[one]) for one in self.languages(at))
        return min(first * second, self.settings.keep)

    @cached_property
    def count(self) -> int:
        """The number of rounds."""
        of_turns = np.cumsum([self.kept(at) for at in range(len(self.turns))])
        whole, left = divmod(self.settings.pairs, int(of_turns[-1]))
        return whole * len(self.turns) + (int(np.searchsorted(of_turns, left)) + 1 if left else 0)

    def drawn(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the sentences of either language that round `at` compares, ascending."""
        random = np.random.Generator(np.random.Philox(key=[self.seed, at], counter=STREAM))
        first, second = (self._draw(random, self.sizes[one]) for one in self.languages(at))
        return first, second

    def _draw(self, random: np.random.Generator, size: int) -> np.ndarray:
        m = min(size, self.settings.sample)
        within = np.sort(random.choice(size, m, replace=False, shuffle=False))
        return (within / self.share).astype(np.int64)

    def all_drawn(self) -> list[np.ndarray]:
        """Return the sentences of each language that any round compares, ascending."""
        parts: list[list[np.ndarray]] = [[np.empty(0, np.int64)] for _ in self.sizes]
        for at in range(self.count):
            for language, rows in zip(self.languages(at), self.drawn(at), strict=True):
                parts[language].append(rows)
        return [np.unique(np.concatenate(rows)) for rows in parts]
