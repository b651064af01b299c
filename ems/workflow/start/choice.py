"""Which corpora `ems init` takes: a rule that is the same for everyone, with its reasons.

1. The pairs of languages share the budget evenly. What one does not have goes to the others, for
   text that is not mined.
2. In a pair the classes of NOISE come in their order: clean text first, then fair, unrated, strings
   (at most a tenth), and what the web was mined for only if these do not fill the share.
3. In a class the corpora share evenly, so that no domain drowns the others; one that has over HUGE
   times what is wanted is not fetched for so little, if the others have enough. Of mined corpora
   one is taken, that with the smallest download which fills the rest, and the next only if it does
   not.
4. Left out are names and titles, which are no sentences, a corpus beside the one that it repeats,
   one of fewer than LEAST pairs (LEAST_UNRATED if it is not rated), and one that OPUS does not
   count.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ems.corpora.catalogue import NOISE, UNRATED, about
from ems.workflow.start.search import Offer, offers

LEAST = 500  # pairs that are worth an entry
LEAST_UNRATED = 5000
HUGE = 10
STRINGS = 10  # labels of programs are at most a tenth of a share
Pair = tuple[str, str]


@dataclass(frozen=True)
class Pick:
    """A corpus that is taken for a pair, up to `most` of its pairs, or with `most` 0 left out."""

    pair: Pair
    offer: Offer
    most: int
    reason: str

    @property
    def capped(self) -> bool:
        """True if it has more pairs than are taken."""
        return self.most < (self.offer.pairs or 0)


def shares(have: list[int], budget: int) -> list[int]:
    """Divide a budget evenly among those who `have` so much; what one cannot use the others get."""
    parts, left = [0] * len(have), budget
    for done, at in enumerate(sorted(range(len(have)), key=have.__getitem__)):
        parts[at] = min(have[at], left // (len(have) - done))
        left -= parts[at]
    return parts


def choose(pairs: list[Pair], budget: int) -> list[Pick]:
    """Return the picks of all pairs, those left out among them, in the order of the rule."""
    found = {pair: offers(*pair) for pair in pairs}
    left_out = {pair: list(_left_out(pair, found[pair])) for pair in pairs}
    out = {pair: {pick.offer for pick in left_out[pair]} for pair in pairs}
    usable = {pair: [each for each in found[pair] if each not in out[pair]] for pair in pairs}
    have = [_wanted(usable[pair], budget // len(pairs)) for pair in pairs]
    picks = []
    for pair, share in zip(pairs, shares(have, budget), strict=True):
        picks += [*_of_pair(pair, usable[pair], share), *left_out[pair]]
    return picks


def _wanted(usable: list[Offer], even: int) -> int:
    """Return how many pairs may be taken: all that are not mined, and mined ones up to an even
    share.
    """
    mined = sum(offer.pairs for offer in usable if offer.noise == "mined")
    others = sum(offer.pairs for offer in usable) - mined
    return others + min(mined, max(0, even - others))


def _left_out(pair: Pair, found: list[Offer]) -> Iterator[Pick]:
    names = {offer.corpus for offer in found}
    for offer in found:
        repeated = about(offer.corpus).repeats
        if offer.noise == "names":
            yield Pick(pair, offer, 0, "names, no sentences")
        elif offer.pairs is None:
            yield Pick(pair, offer, 0, "not counted")
        elif offer.pairs < (least := LEAST_UNRATED if offer.noise == UNRATED else LEAST):
            yield Pick(pair, offer, 0, f"fewer than {least:,} pairs")
        elif repeated in names:
            yield Pick(pair, offer, 0, f"repeats {repeated}")


def _of_pair(pair: Pair, usable: list[Offer], share: int) -> list[Pick]:
    """Return the picks of one pair, class by class, until its share is full."""
    picks: list[Pick] = []
    for noise in NOISE:
        of_class = [offer for offer in usable if offer.noise == noise]
        left = share - sum(pick.most for pick in picks)
        if noise == "strings":
            left = min(left, share // STRINGS)
        picks += (_mined if noise == "mined" else _even)(pair, of_class, left)
    return picks


def _even(pair: Pair, of_class: list[Offer], left: int) -> list[Pick]:
    """Return the picks of a class whose corpora share evenly."""
    small = [offer for offer in of_class if offer.pairs <= HUGE * left]
    huge = [offer for offer in of_class if offer not in small]
    if sum(offer.pairs for offer in small) < left:
        small, huge = of_class, []
    parts = shares([offer.pairs for offer in small], left)
    picks = [_pick(pair, offer, most) for offer, most in zip(small, parts, strict=True)]
    full = "the share is full" if left < LEAST else "too large for the share"
    return [*picks, *(Pick(pair, offer, 0, full) for offer in huge)]


def _mined(pair: Pair, of_class: list[Offer], left: int) -> list[Pick]:
    """Return the picks of mined corpora: the smallest download that fills the rest, else the
    largest corpus first.
    """
    filling = [offer for offer in of_class if offer.pairs >= left]
    order = sorted(of_class, key=lambda offer: -offer.pairs)
    if filling:
        first = min(filling, key=lambda offer: offer.kilobytes)
        order = [first, *(offer for offer in order if offer != first)]
    picks = []
    for offer in order:
        picks.append(_pick(pair, offer, min(offer.pairs, left)))
        left -= picks[-1].most
    return picks


def _pick(pair: Pair, offer: Offer, most: int) -> Pick:
    if most < min(LEAST, offer.pairs):
        return Pick(pair, offer, 0, "the share is full")
    return Pick(pair, offer, most, offer.noise + (", capped" if most < offer.pairs else ""))
