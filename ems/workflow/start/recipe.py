"""The sizes of an experiment by the number of its sentence pairs, and what validates it."""

from dataclasses import dataclass

from ems.workflow.start.choice import Pick

HELD_OUT = 500  # pairs of a language that validate
WORTH = 4  # a file has at least so many times the pairs that are held out of it


@dataclass(frozen=True)
class Size:
    """A table of vectors and its training, for up to `pairs` sentence pairs; `epochs` is how often
    each is seen, up to `most` steps.
    """

    pairs: int
    table: int
    ngrams: int
    batch: int
    epochs: float
    most: int


# the second is `ems-plus` of configs/small62.yaml (docs/ladder.md)
SIZES = (
    Size(300_000, 256, 1 << 16, 1024, 6, 2_000),
    Size(2_000_000, 256, 1 << 16, 2048, 6, 4_000),
    Size(20_000_000, 512, 1 << 17, 2048, 3, 15_000),
    Size(10**12, 768, 1 << 18, 4096, 2, 100_000),
)


def size_for(pairs: int) -> Size:
    """Return the size for so many sentence pairs."""
    return next(size for size in SIZES if pairs <= size.pairs)


def steps_for(size: Size, pairs: int) -> int:
    """Return the steps of a training, in full hundreds."""
    return max(300, min(size.most, round(size.epochs * pairs / size.batch / 100) * 100))


def vocabulary_size(languages: int, pairs: int) -> int:
    """Return the number of subwords: more for more languages, and fewer where there is little text
    to learn them from.
    """
    return max(3000, min(8000 + 2000 * languages, 60_000, pairs // 10 // 100 * 100))


def validation_of(picks: list[Pick]) -> dict[str, list[tuple[str, str]]]:
    """Return the corpora whose first pairs are held out -> the pairs of languages that each
    validates: one for each, of the cleanest class, and as few corpora as do.
    """
    left = {pick.pair for pick in picks if pick.most}
    chosen: dict[str, list[tuple[str, str]]] = {}
    while left:
        able: dict[str, list[Pick]] = {}
        for pick in picks:
            if pick.most and pick.pair in left:
                able.setdefault(pick.offer.corpus, []).append(pick)
        name = max(able, key=lambda corpus: _worth(able[corpus]))
        large = [pick.pair for pick in able[name] if _is_large(pick)]
        chosen[name] = large or [pick.pair for pick in able[name]]
        left -= set(chosen[name])
    return chosen


def _worth(picks: list[Pick]) -> tuple[int, int, int]:
    """Return what makes a corpus a good one to validate on: many pairs of languages, human
    translation, size.
    """
    large = [pick for pick in picks if _is_large(pick)]
    human = sum(pick.offer.noise in ("clean", "fair") for pick in large)
    return human, len(large), sum(pick.most for pick in picks)


def _is_large(pick: Pick) -> bool:
    return pick.most >= WORTH * HELD_OUT


def held_out(picks: list[Pick]) -> int:
    """Return how many pairs of each file of a corpus are held out."""
    return min(HELD_OUT, *(pick.offer.pairs // len(pick.offer.files) // WORTH for pick in picks))
