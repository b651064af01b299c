"""Lines -> token ids, by the segmenters and the vocabulary of a model folder, without PyTorch."""

import unicodedata
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ems.base.errors import Damaged, EmsError, NotFinite, mistake
from ems.base.files import EXPORTED, VOCABULARY
from ems.base.progress import Progress
from ems.model.folder import DESCRIPTION, Description
from ems.text import segmenters  # noqa: F401  puts all segmenters into the source hash of encoding
from ems.text.normalise import tidier, tidy_lines
from ems.text.segmenters.base import SPACE, load, segmenter
from ems.text.subwords import UNK, by_characters, encode_lines, load_vocabulary

BLOCK = 256  # vectors, for which a processor's cache has room
Languages = str | list[str] | None  # of all lines, or one per line


class Encoded(NamedTuple):
    """The vectors of N lines, and counts of their tokens, int64[N]."""

    vectors: np.ndarray  # float32[N, d]
    tokens: np.ndarray  # all; the following count the first `max_tokens` only
    unknown: np.ndarray
    meaningful: np.ndarray  # with a letter, a digit or a pictograph


class Tokeniser:
    """The part of an encoder that cuts lines into pieces; a subclass has `of_one_language`."""

    threads = 1  # of SentencePiece

    def __init__(self, folder: Path, description: Description) -> None:
        most, found = description.model.pooled_width, description.dimensions or 0
        if found > most:
            about = folder / (EXPORTED if description.weights else DESCRIPTION)
            raise Damaged(about, f"expected at most {most} under `dimensions`, found {found}")
        self.folder = folder
        self.segmenters: dict[str, str] = description.segmenters
        self.max_tokens = description.model.max_tokens
        self.tidy = tidier(description.format_characters)
        self.vocabulary = load_vocabulary(folder / VOCABULARY)

    def encode(
        self,
        lines: list[str],
        language: str | None = None,
        what: str = "encode",
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Return embeddings float32[len(lines), d]. Progress is logged as `what`, or added to
        `progress`. Raises `EmsError` for an unknown language, and for None if tokens depend on it.
        """
        self.segmenter(language)
        own = Progress(what and f"{what} {language or ''}".rstrip(), len(lines), "sentences")
        vectors = self.encoded(lines, language, progress or own).vectors
        own.close()
        return vectors

    def encoded(
        self, lines: list[str], language: Languages = None, progress: Any = None
    ) -> Encoded:
        if not (isinstance(language, list) and lines):
            return self.of_one_language(lines, language, progress)
        codes = dict.fromkeys(language)  # the lines of each language are encoded together
        rows = [[row for row, own in enumerate(language) if own == code] for code in codes]
        own = [[lines[row] for row in part] for part in rows]
        parts = [self.of_one_language(*part, progress) for part in zip(own, codes, strict=True)]
        order = np.argsort(np.concatenate(rows))
        return Encoded(*(np.concatenate(part)[order] for part in zip(*parts, strict=True)))

    def of_one_language(self, lines: list[str], language: str | None, progress: Any) -> Encoded:
        """Do `encoded` for lines of one language."""
        raise NotImplementedError

    def tokenise(self, lines: list[str], language: str | None) -> list[np.ndarray]:
        """Return ids, int64[T] each, one <unk> for a line without a piece. Errors: as `encode`."""
        words = self.words(lines, language)
        encoded = encode_lines(self.vocabulary, words, language or "", self.threads)
        return [np.array(ids or [UNK], np.int64) for ids in encoded]

    def words(self, lines: list[str], language: str | None) -> list[str]:
        segment = segmenter(self.segmenter(language), language or "")
        return [line.lower() for line in segment(tidy_lines(lines, self.tidy))]

    def by_word(self, language: str | None) -> bool:
        """Return whether `words` treats each word of a line alone."""
        return load(self.segmenter(language)).by_word

    def segmenter(self, language: str | None) -> str:
        """Return the name of a language's segmenter. Raises `EmsError` as `encode` does."""
        if language is None:
            return self._of_all
        if language not in self.segmenters:
            known = ", ".join(sorted(self.segmenters))
            raise EmsError(f"language {language!r}: {self.folder} was trained for {known}")
        return self.segmenters[language]

    @cached_property
    def _of_all(self) -> str:
        """The segmenter of all languages. Raises `EmsError` if tokens depend on the language."""
        tools = sorted(set(self.segmenters.values()))
        cut = [code for code in self.segmenters if by_characters(self.vocabulary, code)]
        if len(tools) > 1 or any(load(name).by_language for name in tools):
            reason = f"segments by {', '.join(tools)}"
        elif cut:
            reason = f"cuts {', '.join(cut)} into characters"
        else:
            return tools[0]
        words = {"reason": reason, "known": sorted(self.segmenters)}
        raise mistake("no language of lines", folder=self.folder, **words)

    def token_counts(self, lines: list[str], language: str | None) -> list[int]:
        """Count the tokens of each line; vectors are of the first `max_tokens` only."""
        return [len(tokens) for tokens in self.tokenise(lines, language)]

    def known(self, ids: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
        """Count the unknown and the meaningful ones among the ids of N texts, int64[N] each."""
        text = np.repeat(np.arange(len(lengths)), lengths)  # of each id
        kinds = (ids == UNK, self.meaningful[ids])
        return [np.bincount(text[which], minlength=len(lengths)) for which in kinds]

    @cached_property
    def meaningful(self) -> np.ndarray:
        """Bool per piece: it has a letter, a digit or a pictograph."""
        pieces = self.vocabulary.id_to_piece(list(range(self.vocabulary.get_piece_size())))
        kinds = (map(unicodedata.category, piece.lstrip(SPACE)) for piece in pieces)
        known = np.array([any(kind[0] in "LMN" or kind == "So" for kind in own) for own in kinds])
        known[UNK] = False
        return known


def check_finite(vectors: np.ndarray, model: object) -> None:
    """Raise `NotFinite` unless all of vectors[N, d], and their lengths, are finite."""
    with np.errstate(all="ignore"):
        squares = np.einsum("nd,nd->n", vectors, vectors)
    if bad := np.flatnonzero(~np.isfinite(squares)).tolist():
        problem = f"the vectors of {len(bad):,} of {len(vectors):,} sentences are not finite"
        advice = "the model is damaged: train, export or fetch it again"
        raise NotFinite(f"{model}: {problem}; {advice}")


def unit_rows(vectors: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Scale the rows of vectors[N, d] to length 1, in `out`; rows of zeros stay zero."""
    units = np.empty_like(vectors) if out is None else out
    for start in range(0, len(vectors), BLOCK):  # which fit the processor's cache
        rows = vectors[start : start + BLOCK]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        np.divide(rows, np.where(lengths > 0, lengths, 1), units[start : start + BLOCK])
    return units
