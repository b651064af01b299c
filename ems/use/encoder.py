"""The Python interface: `Encoder`, and `score` and `mine` for sentences in memory."""

import logging
import re
import site
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ems.base.errors import EmsError, mistake
from ems.base.files import EXPORTED, kind_of, unreadable
from ems.base.progress import Progress, log
from ems.base.provenance import source_root
from ems.base.texts import is_visible
from ems.bench.margin import MARGINS, Mined, pairs_of, scores_of
from ems.bench.nearest import Distinct, nearest, spread
from ems.config.languages import UNSEEN, code_among
from ems.model.folder import DESCRIPTION
from ems.model.lines import Tokeniser, unit_rows
from ems.model.static import CACHE_MB, StaticEncoder, load_encoder
from ems.use.arguments import as_ours, limit, lines_of, one_of, prefix, texts_of, whole

OWN_MODEL = "models/ems-62"
COSINE = "absolute"  # the margin without neighbours
UNKNOWN_SHARE = 0.1  # of all pieces; a larger share is a warning
DEVICES, PRECISIONS = ("auto", "cpu", "cuda"), ("float32", "bfloat16", "int8")
Language = str | Iterable[str] | None  # of all lines, or one per line


class Encoder:
    """Turns sentences into vectors with a trained model.

        encoder = Encoder()  # of 62 languages; or Encoder("exports/ems")
        encoder.encode(["Hallo", "Hello"], normalise=True)  # float32[2, d]

    `model` is None for the encoder that comes with EMS, or a model folder, a folder written by `ems
    export`, or the folder or hub name of a sentence-transformers model (which needs that package).
    `device` is auto, cpu or cuda. `precision` is float32; EMS models also take bfloat16 and, on a
    CPU, int8, which are faster on hardware that supports them. A model without layers computes with
    `threads` threads, and keeps the sums of frequent words in about `cache_mb` MB of memory; its
    vectors depend on neither. Raises `EmsError` for a model that cannot be loaded.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        device: str = "auto",
        precision: str = "float32",
        threads: int = 1,
        cache_mb: int = CACHE_MB,
    ) -> None:
        if model is None:
            model = own_model()
            log.info("model: %s, which comes with EMS", model.name)
        if not isinstance(model, str | Path):
            raise EmsError(f"model: expected a folder or a name, found {type(model).__name__}")
        one_of(precision, "precision", PRECISIONS)
        whole(threads, "threads")
        whole(cache_mb, "cache_mb")
        self.model, folder = str(model), Path(model)
        kind_of(folder, unreadable)
        self._lines: Any
        self._seen, self._warned = np.zeros(4, np.int64), False
        if any((folder / name).is_file() for name in (DESCRIPTION, EXPORTED)):
            one_of(device, "device", DEVICES)
            self._lines = load_encoder(folder, device, precision, threads, cache_mb)
            return
        from ems.bench.peers import SentenceTransformersEncoder

        of_hub = not folder.exists() and re.fullmatch("[^/.~][^/]*/[^/]+", self.model)
        if not of_hub and not (folder / "modules.json").is_file():
            found = "found none of them" if folder.exists() else "there is no such folder"
            raise mistake("no model", folder=folder, found=found)
        if precision != "float32":
            raise EmsError(f"{model}: precision {precision} is for EMS models only; choose float32")
        own_device = None if device == "auto" else device
        self._lines = SentenceTransformersEncoder(self.model, own_device)

    @property
    def is_static(self) -> bool:
        """True if a vector depends on its line alone, not on the lines encoded with it."""
        return isinstance(self._lines, StaticEncoder)

    @property
    def identity(self) -> str:
        """Hash of everything that the vectors depend on."""
        return self._lines.identity

    @property
    def languages(self) -> list[str]:
        """Languages that the model was trained for; [] if it is not an EMS model."""
        return sorted({*getattr(self._lines, "segmenters", ())} - {UNSEEN})

    @property
    def dimension(self) -> int:
        """The number d of a vector's dimensions."""
        return self.vectors([]).shape[1]

    def __repr__(self) -> str:
        languages = ", ".join(self.languages) or "unknown"
        return f"Encoder({self.model!r}): d = {self.dimension}, languages: {languages}"

    def similarity(self, first: Any, second: Any) -> np.ndarray:
        """Return the cosines of N texts, or vectors [N, d], with M others, float32[N, M]."""
        sides = [
            unit_rows(np.atleast_2d(side).astype(np.float32))
            if getattr(side, "ndim", 0) and side.dtype.kind == "f"
            else np.atleast_2d(self.encode(side, normalise=True))
            for side in (first, second)
        ]
        return sides[0] @ sides[1].T

    def encode(
        self,
        lines: Any = None,
        language: Language = None,
        normalise: bool = False,
        half: bool = False,
        dimensions: int | None = 0,
        convert_to_tensor: bool = False,
        show_progress: bool = False,
        **options: Any,
    ) -> Any:
        """Encode lines to vectors, float32[len(lines), d], in the same order; one text to
        float32[d]. A line without text, or without a piece that the model knows, is all zeros.

        Lines are a list, an iterator, or a column of numpy, pandas or pyarrow. `language` is
        required only by a model that segments its languages differently: one code, or one per line.
        `dimensions` keeps the first numbers of each vector (0: all), for models trained with
        Matryoshka prefixes. `normalise` then scales vectors to length 1, except zero vectors.
        `half` returns float16. `show_progress` logs a line every five seconds. `options` are
        keywords of SentenceTransformer.encode. Raises `EmsError` for any other argument.
        """
        one_of(convert_to_tensor, "convert_to_tensor")
        given = {"lines": lines, "normalise": normalise, "dimensions": dimensions}
        given["show_progress"] = show_progress
        given |= as_ours(options, given)
        texts, single = texts_of(given.pop("lines"))
        if shown := given.pop("show_progress"):
            logging.basicConfig(format="%(message)s")  # nothing if the program shows logs already
            log.setLevel(logging.INFO)
        progress = Progress("encode" if shown else "", len(texts), "lines")
        vectors = self.vectors(texts, language, half=half, progress=progress, **given)
        progress.close()
        self._warned = self._warned or self.warn_of_unknown("encode")
        rows = vectors[0] if single else vectors
        if not convert_to_tensor:
            return rows
        import torch

        return torch.from_numpy(rows)

    def vectors(self, lines: list[str], language: Language = None, **options: Any) -> np.ndarray:
        """Encode a list as `encode` does, without a warning, but count the unknown pieces."""
        return self.counted(lines, language, **options)[0]

    def counted(
        self,
        lines: list[str],
        language: Language = None,
        dimensions: int | None = 0,
        normalise: bool = False,
        half: bool = False,
        progress: Any = None,  # its `add(count)` is called as lines are finished
    ) -> tuple[np.ndarray, list[int]]:
        """Return `vectors`, and the number of tokens of each line ([]: use `token_counts`)."""
        one_of(normalise, "normalise")
        one_of(half, "half")
        vectors, known, counts = self._encoded(lines, language, progress)
        vectors = vectors[:, : prefix(dimensions, vectors.shape[1])]
        vectors[~known] = 0
        if normalise:
            vectors = unit_rows(vectors, vectors)
        with np.errstate(over="ignore"):
            result = vectors.astype(np.float16 if half else np.float32, copy=False)
        if half and not np.isfinite(result).all():
            raise EmsError(f"half: {self.model} has vectors above 65,504; normalise them")
        return result, counts

    def _encoded(
        self, lines: list[str], language: Language, progress: Any
    ) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """Return the model's vectors, bool[N] of lines with a piece that it knows, and counts."""
        if not isinstance(language, str | None):
            codes = lines_of(language, "language")
            if len(codes) != len(lines):
                raise mistake("languages of lines", expected=len(lines), found=len(codes))
            language = list(map(self._code, codes))
        if not isinstance(self._lines, Tokeniser):
            known = np.fromiter(map(is_visible, lines), bool, len(lines))
            texts = [line if seen else "a" for line, seen in zip(lines, known, strict=True)]
            vectors = self._lines.encode(texts or ["a"], what="", progress=progress)
            return vectors[: len(lines)], known, []
        code = self._code(language) if isinstance(language, str) else language
        found = self._lines.encoded(lines, code, progress)
        known = found.meaningful > 0
        blank = np.zeros(len(lines), bool)
        without = np.flatnonzero(~known).tolist()
        blank[without] = [not is_visible(lines[row]) for row in without]
        unknown = found.unknown - blank  # a blank line is one <unk>
        known |= (unknown == 0) & ~blank
        pieces = np.minimum(found.tokens, self._lines.max_tokens)
        self._seen += pieces.sum(), unknown.sum(), len(lines), (~known & ~blank).sum()
        return found.vectors, known, found.tokens.tolist()

    def sums(self, lines: list[str], language: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Return `StaticEncoder.sums` of a static model."""
        return self._lines.sums(lines, language and self._code(language))

    def vectors_of(self, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the vectors of sums of a static model, float32[N, d]."""
        return self._lines.vectors_of(sums, counts)

    def _code(self, language: str) -> str:
        return code_among(self.languages, language) or language

    def warn_of_unknown(self, text: object) -> bool:
        """Log the share of unknown pieces since the last call, if it is large."""
        pieces, unknown, lines, without = self._seen.tolist()
        self._seen[:] = 0
        if large := unknown > UNKNOWN_SHARE * pieces:
            share = f"{100 * unknown / pieces:.0f} % of the pieces are unknown to the model"
            zeros = f"{without:,} of {lines:,} lines have no known piece, and vectors of zeros"
            log.warning("%s: %s, which was not trained for such characters; %s", text, share, zeros)
        return large

    def token_counts(self, lines: Any, language: Language = None) -> list[int]:
        """Count the tokens of each line, including tokens after the last one read."""
        texts, _ = texts_of(lines)
        if not isinstance(self._lines, Tokeniser):
            return self._lines.token_counts(texts, "")
        return self._encoded(texts, language, None)[2]

    def width(self, language: str | None = None, dimensions: int | None = 0) -> int:
        """Return the dimension d of the vectors. Raises `EmsError` for a missing language."""
        code = language and self._code(language)
        vectors = self._lines.encode(["a"], code, what="")
        return prefix(dimensions, vectors.shape[1])


def own_model() -> Path:
    """Return the folder of EMS's own encoder. Raises `EmsError` if project and wheel lack it."""
    roots = (source_root().parent, f"{sys.prefix}/share/ems", f"{site.getuserbase()}/share/ems")
    places = [Path(root, OWN_MODEL) for root in roots]
    for place in places:
        if (place / EXPORTED).is_file():
            return place
    raise EmsError(f"no model was named, and {places[0]} is not there; name one with --model")


# --- pairs


def score(
    encoder: Encoder | str | Path,
    source: Any,
    target: Any,
    source_language: Language = None,
    target_language: Language = None,
    margin: str = COSINE,
    neighbours: int = 4,
) -> Any:
    """Score the similarity of the sentences of each pair, float64[N]; a float for two texts.

    The margin `absolute` is the cosine. `ratio` and `distance` relate it to the mean cosine of both
    sentences with their `neighbours` nearest distinct sentences on the other side. A sentence
    without text, or without a piece that the model knows, has cosine 0 with all others and is no
    neighbour. `encoder` is an `Encoder` or the model of one. Raises `EmsError` for sides of
    different lengths.
    """
    one_of(margin, "margin", tuple(MARGINS))
    whole(neighbours, "neighbours")
    sides = texts_of(source, "source"), texts_of(target, "target")
    (source, single), (target, other) = sides
    if single != other or len(source) != len(target):
        found = ["a text" if one else f"{len(side):,}" for side, one in sides]
        raise EmsError(f"expected sides of equal length, found {found[0]} and {found[1]} sentences")
    first, second = _vectors(encoder, (source, source_language), (target, target_language))
    scores = cosines(first, second).astype(np.float64)
    if margin != COSINE and len(first):
        sides = Distinct(first, source), Distinct(second, target)
        found = spread(nearest(*sides, neighbours, what=""), sides)
        scores = scores_of(scores, *found, margin)
    return float(scores[0]) if single else scores


def mine(
    encoder: Encoder | str | Path,
    source: Any,
    target: Any,
    source_language: Language = None,
    target_language: Language = None,
    margin: str = "ratio",
    neighbours: int = 4,
    threshold: float | None = None,
    one_to_one: bool = True,
) -> Mined:
    """Find likely translation pairs in two texts, the best first.

    The result has the rows `first` of `source` and `second` of `target`, int64[P], and the margin
    `score`, float64[P] (Artetxe and Schwenk, ACL 2019), which is at least `threshold`.
    `one_to_one` uses each sentence at most once. Copies of a sentence count once as neighbours and
    pair in their order. Sentences without text or without a known piece are in no pair. The search
    is exact, so its time grows with len(source) x len(target).
    """
    one_of(margin, "margin", tuple(MARGINS))
    one_of(one_to_one, "one_to_one")
    whole(neighbours, "neighbours")
    least = limit(threshold)
    texts = lines_of(source, "source"), lines_of(target, "target")
    first, second = _vectors(encoder, (texts[0], source_language), (texts[1], target_language))
    sides = Distinct(first, texts[0]), Distinct(second, texts[1])
    found = nearest(*sides, neighbours, what="")
    return pairs_of(found, sides, margin, one_to_one, least)


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Multiply rows of length 1, first[N, d] with second[N, d]: float32[N]."""
    return np.einsum("nd,nd->n", first, second)


def _vectors(encoder: Encoder | str | Path, *sides: tuple[list[str], Language]) -> list[np.ndarray]:
    """Encode both sides to vectors of length 1."""
    model = encoder if isinstance(encoder, Encoder) else Encoder(encoder)
    return [model.encode(lines, language, normalise=True) for lines, language in sides]
