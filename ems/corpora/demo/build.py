"""Which sentences of the demo corpus go where: benchmark, validation, training, leak.

Sentences are drawn at random from each template's space of combinations, equally many from each as
far as its space allows. One is taken only if its key (see `key`) is new in every language, so all
sentences taken differ from each other under that key, and training cannot meet the benchmark by chance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from ems.corpora.demo.free import read_free
from ems.corpora.demo.grammar import LANGUAGES, Template, read_lexicon, read_templates
from ems.corpora.demo.leak import Leak, key, plan_leak
from ems.errors import EmsError

T = TypeVar("T")

SEED = 20250101
OTHERS = LANGUAGES[1:]
BENCH_HELDOUT, BENCH_FREE, BENCH_TRAIN = 300, 40, 260
DEV_FREE, DEV_TRAIN = 20, 280
COMMON, OWN, POOL = 6_000, 12_000, 36_000  # training pairs: of all languages, of one, drawn from
LARGEST_SHARE = 0.6  # of a template's space that may be drawn


@dataclass(frozen=True)
class Sentence:
    """One meaning in all languages; `template` is None for a free sentence."""

    texts: dict[str, str]
    template: Template | None = None
    fillers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Demo:
    """The whole demo corpus. `train` is without the leak, which `leak` holds per language."""

    benchmark: list[Sentence]
    dev: list[Sentence]
    train: dict[str, list[Sentence]]
    leak: dict[str, list[Leak]]


class Drawer:
    """Draws sentences whose keys are all new, each combination at most once."""

    def __init__(self, random: Random) -> None:
        self.random, self.seen = random, set[str]()

    def admit(self, sentence: Sentence) -> bool:
        """Whether the sentence is new in every language; if so, remember it."""
        keys = [key(text) for text in sentence.texts.values()]
        if not self.seen.isdisjoint(keys) or len(set(keys)) < len(keys):
            return False
        self.seen.update(keys)
        return True

    def draw(self, template: Template, count: int) -> list[Sentence]:
        """Return `count` new sentences of `template`."""
        drawn: list[Sentence] = []
        for _ in range(50 * count):
            if len(drawn) == count:
                return drawn
            fillers = template.fillers(below(self.random, template.space))
            sentence = fillers and compose(template, fillers)
            if sentence and self.admit(sentence):
                drawn.append(sentence)
        raise EmsError(f"template {template.name}: found only {len(drawn)} of {count} sentences")

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


def build(seed: int = SEED) -> Demo:
    """Make the corpus. The same seed gives the same sentences in the same order."""
    random = Random(seed)
    drawer = Drawer(random)
    free = [Sentence(texts) for texts in shuffled(read_free(), random)]
    for sentence in free:
        if not drawer.admit(sentence):
            raise EmsError(f"free.tsv: a sentence repeats another: {sentence.texts['en']!r}")
    templates = read_templates(read_lexicon())
    heldout = draw_evenly(drawer, [t for t in templates if t.heldout], BENCH_HELDOUT)
    free_train = free[BENCH_FREE + DEV_FREE :]
    wanted = BENCH_TRAIN + DEV_TRAIN + COMMON - len(free_train) + POOL
    made = iter(draw_evenly(drawer, [t for t in templates if not t.heldout], wanted))
    benchmark = shuffled([*heldout, *free[:BENCH_FREE], *take(made, BENCH_TRAIN)], random)
    dev = shuffled([*free[BENCH_FREE:][:DEV_FREE], *take(made, DEV_TRAIN)], random)
    common = [*free_train, *take(made, COMMON - len(free_train))]
    pool = list(made)
    train = {x: shuffled([*common, *shuffled(pool, random)[:OWN]], random) for x in OTHERS}
    leak = {language: plan_leak(benchmark, language, drawer, random) for language in OTHERS}
    return Demo(benchmark, dev, train, leak)


def compose(template: Template, fillers: tuple[int, ...]) -> Sentence:
    """Return the sentence of `template` with these fillers, in all languages."""
    texts = {language: template.render(language, fillers) for language in LANGUAGES}
    return Sentence(texts, template, fillers)


def draw_evenly(drawer: Drawer, templates: Sequence[Template], total: int) -> list[Sentence]:
    """Draw `total` sentences, equally many of each template as far as its space allows; shuffled."""
    capacities = [int(template.space * LARGEST_SHARE) for template in templates]
    drawn: list[Sentence] = []
    for template, count in zip(templates, quotas(capacities, total), strict=True):
        drawn += drawer.draw(template, count)
    return shuffled(drawn, drawer.random)


def quotas(capacities: Sequence[int], total: int) -> list[int]:
    """Share `total` out equally, none beyond its capacity; what small ones cannot take goes to the rest."""
    shares = [0] * len(capacities)
    for left, index in zip(
        range(len(capacities), 0, -1),
        sorted(range(len(capacities)), key=capacities.__getitem__),
        strict=True,
    ):
        shares[index] = min(capacities[index], total // left)
        total -= shares[index]
    if total:
        raise EmsError(f"the templates' spaces are too small: {total} sentences are missing")
    return shares


def take(items: Iterable[T], count: int) -> list[T]:
    """Return the next `count` items of an iterator."""
    return [item for _, item in zip(range(count), items, strict=False)]


def below(random: Random, limit: int) -> int:
    """Return a random number of 0 ... limit - 1."""
    return int(random.random() * limit)


def shuffled(items: Sequence[T], random: Random) -> list[T]:
    """Return the items in random order."""
    order = [random.random() for _ in items]
    return [items[index] for index in sorted(range(len(items)), key=order.__getitem__)]
