"""Draw sentences of the demo corpus at random.

A sentence is taken only if its key is new in every language, so training cannot meet the benchmark
by chance.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import regex

from ems.base.errors import EmsError
from ems.corpora.demo.grammar import Template

T = TypeVar("T")

LARGEST_SHARE = 0.6  # of a template's combinations that may be drawn
NOISE = regex.compile(r"[^\p{L}\p{N}\p{M}]+")


def key(text: str) -> str:
    """Return what decontamination compares: NFKC, lower case, only letters, digits and marks."""
    return NOISE.sub("", unicodedata.normalize("NFKC", text).lower())


@dataclass(frozen=True)
class Sentence:
    """One meaning in all its languages; `template` is None for a free sentence."""

    texts: dict[str, str]
    template: Template | None = None
    fillers: tuple[int, ...] = ()

    def pair(self, language: str) -> tuple[str, str]:
        """Return it as (English, `language`)."""
        return self.texts["en"], self.texts[language]


class Drawer:
    """Draws sentences whose keys are all new, each combination at most once."""

    def __init__(self, random: Random) -> None:
        self.random, self.seen = random, set[str]()

    def admit(self, sentence: Sentence) -> bool:
        """True if the sentence is new in every language; it is remembered then."""
        keys = [key(text) for text in sentence.texts.values()]
        if not self.seen.isdisjoint(keys):
            return False
        self.seen.update(keys)
        return True

    def draw(self, template: Template, count: int) -> list[Sentence]:
        """Return `count` new sentences of `template`."""
        drawn: list[Sentence] = []
        for _ in range(50 * count):
            if len(drawn) == count:
                break
            fillers = template.fillers(below(self.random, template.space))
            sentence = compose(template, fillers) if fillers else None
            if sentence and self.admit(sentence):
                drawn.append(sentence)
        if len(drawn) < count:
            raise EmsError(f"template {template.name}: only {len(drawn)} of {count} sentences")
        return drawn

    def neighbour(self, sentence: Sentence) -> Sentence:
        """Return a new sentence of the same template with the filler of one slot exchanged."""
        template = sentence.template
        if template is None:
            raise EmsError("a free sentence has no neighbour; take one that a template made")
        for _ in range(1000):
            fillers = list(sentence.fillers)
            slot = below(self.random, len(fillers))
            fillers[slot] = below(self.random, template.slots[slot].size)
            other = compose(template, tuple(fillers)) if template.distinct(fillers) else None
            if other and self.admit(other):
                return other
        raise EmsError(f"template {template.name}: no unused neighbour of {sentence.texts['en']!r}")


def compose(template: Template, fillers: tuple[int, ...]) -> Sentence:
    """Return the sentence of `template` with these fillers, in all its languages."""
    texts = {language: template.render(language, fillers) for language in template.frames}
    return Sentence(texts, template, fillers)


def draw_evenly(drawer: Drawer, templates: Sequence[Template], total: int) -> list[Sentence]:
    """Draw `total` sentences, equally many of each template as far as its space allows; shuffled."""
    capacities = [int(template.space * LARGEST_SHARE) for template in templates]
    drawn: list[Sentence] = []
    for template, count in zip(templates, quotas(capacities, total), strict=True):
        drawn += drawer.draw(template, count)
    return shuffled(drawn, drawer.random)


def quotas(capacities: Sequence[int], total: int) -> list[int]:
    """Share `total` out equally, none beyond its capacity; the rest goes to larger ones."""
    shares = [0] * len(capacities)
    smallest_first = sorted(range(len(capacities)), key=capacities.__getitem__)
    for done, index in enumerate(smallest_first):
        shares[index] = min(capacities[index], total // (len(capacities) - done))
        total -= shares[index]
    if total:
        raise EmsError(f"the templates' spaces are too small: {total} sentences are missing")
    return shares


def below(random: Random, limit: int) -> int:
    """Return a random number of 0 ... limit - 1."""
    return int(random.random() * limit)


def shuffled(items: Sequence[T], random: Random) -> list[T]:
    """Return the items in random order."""
    order = [random.random() for _ in items]
    return [items[index] for index in sorted(range(len(items)), key=order.__getitem__)]
