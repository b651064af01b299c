"""A filter for OpusFilter (Aulamo et al., ACL 2020 demos) that scores pairs with a trained model.

A configuration names it with `module: ems.use.opusfilter`. Nothing of EMS imports this module.
"""

from collections.abc import Iterable, Iterator, Sequence

from opusfilter import CLEAN_HIGH, FilterABC
from opusfilter.util import grouper

from ems.use.encoder import Encoder, score

SegmentPair = Sequence[str]
CHUNK = 8192  # pairs encoded together


class EmsFilter(FilterABC):
    """Accepts pairs whose sentences have a cosine of at least `threshold`. `model`, `device` and
    `precision` are passed to `ems.Encoder`; a relative path starts at the current folder.
    `languages` names the languages of both inputs, for a model that segments by language.
    """

    score_direction = CLEAN_HIGH
    accept_threshold = -1 - 1e-6
    reject_threshold = 1 + 1e-6

    def __init__(
        self,
        model: str,
        threshold: float = 0.8,
        languages: Sequence[str | None] = (None, None),
        device: str = "auto",
        precision: str = "float32",
        **kwargs: str,
    ) -> None:
        super().__init__(**kwargs)
        self.encoder = Encoder(model, device, precision)
        self.threshold, self.languages = threshold, languages

    def score(self, pairs: Iterable[SegmentPair]) -> Iterator[float]:
        """Yield the cosine of each pair. Raises `ValueError` unless there are two inputs."""
        for chunk in grouper(pairs, CHUNK):
            source, target = zip(*chunk, strict=True)
            yield from score(self.encoder, source, target, *self.languages).tolist()

    def accept(self, score: float) -> bool:
        return score >= self.threshold

    def filter(self, pairs: Iterable[SegmentPair]) -> Iterator[SegmentPair]:
        """Yield the accepted pairs, scored in chunks; OpusFilter scores them one by one."""
        return (pair for pair, accepted in self._decided(pairs) if accepted)

    def filterfalse(self, pairs: Iterable[SegmentPair]) -> Iterator[SegmentPair]:
        return (pair for pair, accepted in self._decided(pairs) if not accepted)

    def _decided(self, pairs: Iterable[SegmentPair]) -> Iterator[tuple[SegmentPair, bool]]:
        for chunk in grouper(pairs, CHUNK):
            yield from zip(chunk, self.decisions(chunk), strict=True)
