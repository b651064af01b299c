"""Which sentences of the demo corpus go where: benchmark, validation, training, leak."""

from dataclasses import dataclass
from itertools import islice
from random import Random

from ems.base.errors import EmsError
from ems.corpora.demo.draw import Drawer, Sentence, draw_evenly, shuffled
from ems.corpora.demo.free import read_free
from ems.corpora.demo.grammar import LANGUAGES, Template, read_lexicon, read_templates
from ems.corpora.demo.leak import Leak, plan_leak

SEED = 20250101
OTHERS = LANGUAGES[1:]
BENCH_HELDOUT, BENCH_FREE, BENCH_TRAIN = 300, 40, 260
DEV_FREE, DEV_TRAIN = 20, 280
COMMON, OWN, POOL = 6_000, 12_000, 36_000  # training pairs: of all languages, of one, drawn from


@dataclass(frozen=True)
class Demo:
    """The whole demo corpus; `leak` is not in `train`. What `drawer` draws next is in no part."""

    benchmark: list[Sentence]
    dev: list[Sentence]
    train: dict[str, list[Sentence]]
    leak: dict[str, list[Leak]]
    templates: list[Template]
    drawer: Drawer


def build(seed: int = SEED) -> Demo:
    """Make the corpus. The same seed gives the same sentences in the same order."""
    random = Random(seed)
    drawer = Drawer(random)
    free = admitted_free(drawer)
    templates = read_templates(read_lexicon())
    heldout = draw_evenly(drawer, [t for t in templates if t.heldout], BENCH_HELDOUT)
    free_train = free[BENCH_FREE + DEV_FREE :]
    wanted = BENCH_TRAIN + DEV_TRAIN + COMMON - len(free_train) + POOL
    made = iter(draw_evenly(drawer, [t for t in templates if not t.heldout], wanted))
    benchmark = [*heldout, *free[:BENCH_FREE], *islice(made, BENCH_TRAIN)]
    dev = [*free[BENCH_FREE:][:DEV_FREE], *islice(made, DEV_TRAIN)]
    common = [*free_train, *islice(made, COMMON - len(free_train))]
    pool = list(made)
    train = {language: [*common, *shuffled(pool, random)[:OWN]] for language in OTHERS}
    leak = {language: plan_leak(benchmark, language, drawer) for language in OTHERS}
    return Demo(shuffled(benchmark, random), shuffled(dev, random), train, leak, templates, drawer)


def admitted_free(drawer: Drawer) -> list[Sentence]:
    """Return the free sentences in random order. Raises `EmsError` if one repeats another's key."""
    free = [Sentence(texts) for texts in shuffled(read_free(), drawer.random)]
    for sentence in free:
        if not drawer.admit(sentence):
            raise EmsError(
                f"free.tsv: but for case and punctuation, {sentence.texts['en']!r} is in one of "
                "the languages the same as another sentence; reword one of the two"
            )
    return free
