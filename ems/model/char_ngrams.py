"""Vectors of character n-grams (`kind: char-ngram`), alone or joined to embeddings (`fused`).

A word is a run of letters, marks and digits, or a run of other visible characters. It is romanised
and put between `<` and `>`. The features of a line are its words and their n-grams, each counted
once. A feature is hashed to one of 2^20 places, which have an inverse document frequency each, and
from there, with a sign, to one value of the vector (Weinberger et al. 2009, "Feature Hashing for
Large Scale Multitask Learning"). The vector of kind `fused` is [u / |u| ; w g / |g|], where u is
the embedding, g the vector of n n-grams, and w = weight (n / 100)^power.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import regex
from anyascii import anyascii
from mmh3 import hash as murmur
from scipy.sparse import csr_array

from ems.base.errors import Damaged
from ems.base.files import NGRAMS, check_sha256, sha256_file
from ems.base.progress import Progress
from ems.base.texts import BATCH, batched
from ems.config.model import NgramSettings
from ems.model.devices import read_tensors
from ems.model.folder import DESCRIPTION, kind_of, read_description
from ems.model.lines import Tokeniser, unit_rows
from ems.model.static import load_encoder as load_trained
from ems.text.normalise import tidier, tidy_lines

PLACES = 1 << 20
BASE = np.uint32(2654435761)  # odd; base of a polynomial in an n-gram's letters, modulo 2^32
WORDS = 1 << 17  # romanised words in the cache, about 20 MB
_find_words = regex.compile(r"\w+|[^\w\s]+").findall
_tidy = tidier("drop")
COMMON = 100  # number of n-grams at which w is `weight` for every power


def words_of(line: str) -> list[str]:
    """Split a tidy line into words, in compatibility form (NFKC) and lower case."""
    return _find_words(unicodedata.normalize("NFKC", line).lower())


@lru_cache(WORDS)
def _marked(word: str, romanise: bool) -> tuple[str, int]:
    """Return `<word>`, romanised if asked for, and its hash."""
    latin = "".join(anyascii(word).lower().split()) if romanise else ""
    marked = f"<{latin or word}>"  # anyascii drops some signs
    return marked, murmur(marked.encode("utf-8", "surrogatepass"), signed=False)


def murmur_of_each(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Hash each number, uint32[N], as `murmur` hashes its four bytes: MurmurHash3_x86_32,
    https://github.com/aappleby/smhasher/wiki/MurmurHash3.
    """
    mixed = _turned(numbers * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    hashes = _turned(mixed ^ np.uint32(seed), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    hashes ^= np.uint32(4)
    for bits, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashes ^= hashes >> np.uint32(bits)
        hashes *= np.uint32(factor)
    return hashes ^ hashes >> np.uint32(16)


def _turned(numbers: np.ndarray, bits: int) -> np.ndarray:
    return numbers << np.uint32(bits) | numbers >> np.uint32(32 - bits)


def features(lines: list[str], settings: NgramSettings) -> csr_array:
    """Return a sparse float32[N, PLACES] that is 1 where a line has a feature, else 0."""
    unmarked = map(words_of, tidy_lines(lines, _tidy))
    words_by_line = [[_marked(word, settings.romanise) for word in own] for own in unmarked]
    words = [marked for line_words in words_by_line for marked, _ in line_words]
    line = np.repeat(np.arange(len(lines)), list(map(len, words_by_line)))  # of each word
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    letters = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), np.uint32)
    line_of_letter = np.repeat(line, lengths)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(letters))  # to the word's end
    rows = [line]
    whole = (number for line_words in words_by_line for _, number in line_words)
    hashes = [np.fromiter(whole, np.uint32, len(words))]
    rolling = np.zeros(len(letters), np.uint32)
    for n in range(1, settings.most + 1):
        rolling = rolling[: len(letters) - n + 1] * BASE + letters[n - 1 :]  # hashes of n letters
        inside = left[: len(rolling)] >= n
        if n >= settings.least and len(rolling):
            hashes.append(murmur_of_each(rolling[inside], n))
            rows.append(line_of_letter[: len(rolling)][inside])
    columns = np.concatenate(hashes) % np.uint32(PLACES)
    ones = np.ones(len(columns), np.float32)
    matrix = csr_array((ones, (np.concatenate(rows), columns)), (len(lines), PLACES))
    matrix.data[:] = 1
    return matrix


def count_idf(lines: Iterable[str], settings: NgramSettings) -> tuple[np.ndarray, int]:
    """Return the weight of each place, float32[PLACES], and the number of lines: the square root of
    ln((1 + N) / (1 + n)) + 1, where n of N lines have a feature of the place.
    """
    counts, total = np.zeros(PLACES, np.int64), 0
    for batch in batched(lines, len):
        counts += np.bincount(features(batch, settings).indices, minlength=PLACES)
        total += len(batch)
    return np.sqrt(np.log((1 + total) / (1 + counts)) + 1).astype(np.float32), total


def hashing(weights: np.ndarray, buckets: int) -> csr_array:
    """Return a sparse float32[PLACES, buckets] that puts each place's signed weight in a bucket."""
    hashes = murmur_of_each(np.arange(PLACES, dtype=np.uint32), 0)
    signs = np.where(hashes >> np.uint32(31), -weights, weights).astype(np.float32)
    columns = (hashes & np.uint32(0x7FFFFFFF)) % np.uint32(buckets)
    return csr_array((signs, columns, np.arange(PLACES + 1)), (PLACES, buckets))


class NgramEncoder:
    """Encodes lines as hashed n-grams; `weights`: float32[PLACES], one per place (default: 1)."""

    def __init__(self, settings: NgramSettings, weights: np.ndarray | None = None) -> None:
        self.settings = settings
        weights = np.ones(PLACES, np.float32) if weights is None else weights
        self._hashing = hashing(weights, settings.buckets)

    @classmethod
    def load(cls, folder: Path) -> "NgramEncoder":
        """Load the encoder of a folder. Raises `Damaged` if a file is missing or damaged."""
        about, path = read_description(folder), folder / NGRAMS
        check_sha256(path, about.sha256.get(NGRAMS), DESCRIPTION)
        weights = read_tensors(path, {"weights": (PLACES,)})["weights"]
        return cls(about.ngrams, weights.float().numpy())

    def vectors(self, lines: list[str]) -> tuple[csr_array, np.ndarray]:
        """Return float32[N, buckets] for N lines, and the number of n-grams of each line, [N]."""
        matrix = features(lines, self.settings)
        return matrix @ self._hashing, np.diff(matrix.indptr)

    def encode(self, lines: list[str], language: str, what: str = "encode") -> np.ndarray:
        """Return float32[len(lines), buckets]; zeros for a line without a visible character."""
        progress = Progress(f"{what} {language}", len(lines), "sentences")
        result = np.empty((len(lines), self.settings.buckets), np.float32)
        for start in range(0, len(lines), BATCH):
            part = lines[start : start + BATCH]
            self.vectors(part)[0].toarray(out=result[start : start + BATCH])
            progress.add(len(part))
        progress.close()
        return result


def weights_of(counts: np.ndarray, weight: float, power: float) -> np.ndarray:
    """Return w of sentences with `counts` n-grams, float32[N]."""
    return (weight * (counts / COMMON) ** power).astype(np.float32)


class FusedEncoder:
    """Encodes with a system of kind `fused`. Raises `Damaged` if its trained encoder changed."""

    def __init__(self, folder: Path) -> None:
        about = read_description(folder)
        trained = folder / about.of.model
        if sha256_file(trained / DESCRIPTION) != about.of.sha256:
            problem = f"not the model that {folder} was made with; make that folder again"
            raise Damaged(trained / DESCRIPTION, problem)
        self.trained, self.ngrams = load_trained(trained), NgramEncoder.load(folder)
        self.weight, self.power = about.weight, about.power

    def encode(self, lines: list[str], language: str, what: str = "encode") -> np.ndarray:
        """Return float32[len(lines), d + buckets]."""
        embeddings = unit_rows(self.trained.encode(lines, language, what))
        width = embeddings.shape[1]
        result = np.empty((len(lines), width + self.ngrams.settings.buckets), np.float32)
        result[:, :width] = embeddings
        for start in range(0, len(lines), BATCH):
            part = slice(start, start + BATCH)
            vectors, counts = self.ngrams.vectors(lines[part])
            weights = weights_of(counts, self.weight, self.power)
            result[part, width:] = weights[:, None] * unit_rows(vectors.toarray())
        return result

    def token_counts(self, lines: list[str], language: str) -> list[int]:
        return self.trained.token_counts(lines, language)


def load_encoder(folder: Path) -> Tokeniser | NgramEncoder | FusedEncoder:
    loaders = {"char-ngram": NgramEncoder.load, "fused": FusedEncoder}
    return loaders.get(kind_of(folder), load_trained)(folder)
