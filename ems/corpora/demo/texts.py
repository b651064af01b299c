"""Divide the demo's sentences among benchmark, validation, training, leak, and further texts.

Half of the benchmark comes from frames that training never sees. A third of each language's
training pairs has English sides that every language shares; the others are a third of a common
pool. One drawer draws everything, so no sentence is used twice unless a set says so.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from ems.base.errors import EmsError
from ems.config.load import parse_yaml
from ems.corpora.demo import grammar
from ems.corpora.demo.grammar import OTHERS, DemoSentence, Drawer, Template, below, shuffled

SEED = 20250101
BENCH_HELDOUT, BENCH_FREE, BENCH_TRAIN = 300, 40, 260
DEV_FREE, DEV_TRAIN = 20, 280
COMMON, OWN, POOL = 6_000, 12_000, 36_000  # training pairs: shared, from the pool, in the pool
LEAKED_OF_A_KIND = 40  # each of verbatim, disguised, one side only
LEAKED_PAIRS = 3 * LEAKED_OF_A_KIND
HERO = "person"  # the slot with the same word in all sentences of a story
STORIES = 150  # per language
SHORTEST, LONGEST = 3, 8  # sentences in a story
TRIES = 30  # per template and story; few unused sentences may be left

TextPair = tuple[str, str]  # English, other language


@dataclass(frozen=True)
class Material:
    """The demo corpus (`leak` is not part of `train`), all templates, and the drawer."""

    benchmark: list[DemoSentence]
    dev: list[DemoSentence]
    train: dict[str, list[DemoSentence]]
    leak: dict[str, list[TextPair]]
    templates: dict[str, Template]
    drawer: Drawer

    def draw(self, count: int) -> list[DemoSentence]:
        return self.draw_from(list(self.templates), count)

    def draw_from(self, names: Sequence[str], count: int) -> list[DemoSentence]:
        """Draw `count` new sentences evenly from the named templates, in random order."""
        return self.drawer.draw_evenly([self.templates[name] for name in names], count)

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        return shuffled(items, self.drawer.random)


def build() -> Material:
    """Draw the corpus: every call returns the same sentences in the same order."""
    random = Random(SEED)
    drawer = Drawer(random)
    free = [DemoSentence(texts) for texts in shuffled(grammar.read_free(), random)]
    if not all(drawer.admit(sentence) for sentence in free):
        raise EmsError("free.tsv: two sentences have the same letters in one of the languages")
    templates = grammar.read_frames(grammar.HERE / "train.yaml", heldout=False)
    learnt = list(templates.values())
    templates |= grammar.read_frames(grammar.HERE / "heldout.yaml")
    heldout = drawer.draw_evenly([t for t in templates.values() if t.heldout], BENCH_HELDOUT)
    free_train = free[BENCH_FREE + DEV_FREE :]
    wanted = BENCH_TRAIN + DEV_TRAIN + COMMON - len(free_train) + POOL
    drawn = iter(drawer.draw_evenly(learnt, wanted))
    benchmark = [*heldout, *free[:BENCH_FREE], *islice(drawn, BENCH_TRAIN)]
    dev = [*free[BENCH_FREE:][:DEV_FREE], *islice(drawn, DEV_TRAIN)]
    common = [*free_train, *islice(drawn, COMMON - len(free_train))]
    pool = list(drawn)
    train = {language: [*common, *shuffled(pool, random)[:OWN]] for language in OTHERS}
    leak = {language: _leak(benchmark, language, drawer) for language in OTHERS}
    benchmark, dev = shuffled(benchmark, random), shuffled(dev, random)
    return Material(benchmark, dev, train, leak, templates, drawer)


# --- the leak: benchmark pairs in the training text, which decontamination must find


def _leak(benchmark: Sequence[DemoSentence], language: str, drawer: Drawer) -> list[TextPair]:
    """Return LEAKED_PAIRS: verbatim, both sides disguised, one side next to a neighbour's."""
    chosen = shuffled(benchmark, drawer.random)
    one_side = [s for s in chosen if s.template is not None][:LEAKED_OF_A_KIND]
    taken = {id(sentence) for sentence in one_side}
    whole = [s.pair(language) for s in chosen if id(s) not in taken]
    pairs = whole[:LEAKED_OF_A_KIND]
    for number, (english, other) in enumerate(whole[LEAKED_OF_A_KIND:][:LEAKED_OF_A_KIND]):
        pairs.append((disguise(english, number), disguise(other, number + 1)))
    for number, sentence in enumerate(one_side):
        own, near = sentence.pair(language), drawer.neighbour(sentence).pair(language)
        pairs.append((near[0], own[1]) if number % 2 else (own[0], near[1]))
    return pairs


def disguise(text: str, number: int) -> str:
    """Return `text` in disguise `number`, or in the next that keeps its key ("ß" → "SS" does not)."""
    marks = str.maketrans("。，？！、", ".,?!,")
    wide = {code: code + 0xFEE0 for code in range(0x21, 0x7F)} | marks
    apart = text.replace(" ", " \u00a0") if " " in text else f"{text[:-2]}\u3000{text[-2:]}"
    disguises = (
        text.upper() + "!!",
        # ASCII in full width, full-width punctuation as ASCII, some Arabic as ligatures
        text.translate(wide).replace("لا", "ﻻ").replace(".", "…"),
        f"{apart.rstrip('.。')} .",  # extra no-break spaces, or a space before the last two letters
        "« " + unicodedata.normalize("NFD", text.lower()) + " »",  # combining marks decomposed
        "– " + text.lower().rstrip(".。!！?？؟ ") + " –",  # a line of dialogue
    )
    for turn in range(len(disguises)):
        changed = disguises[(number + turn) % len(disguises)]
        if changed != text and grammar.key(changed) == grammar.key(text):
            return changed
    raise EmsError(f"no disguise keeps the key of {text!r}")


# --- stories: documents of single languages


def stories(material: Material) -> dict[str, str]:
    """Return {language: documents}, one sentence per line, a blank line after each document. They
    are not parallel. Each is about one person, so that the context of a sentence is informative.
    """
    random, people = material.drawer.random, grammar.read_lexicon()[HERO]
    learnt = [template for template in material.templates.values() if not template.heldout]
    templates = [template for template in learnt if people in template.slots]
    texts = {}
    for language in grammar.LANGUAGES:
        lines = []
        for _ in range(STORIES):
            length = SHORTEST + below(random, LONGEST - SHORTEST + 1)
            person = below(random, people.size)
            about = (_about(person, t, material.drawer) for t in shuffled(templates, random))
            lines += [s.texts[language] for s in islice(filter(None, about), length)] + [""]
        texts[language] = "\n".join(lines) + "\n"
    return texts


def _about(person: int, template: Template, drawer: Drawer) -> DemoSentence | None:
    """Return a new sentence whose first HERO slot is `person`; None if not found in TRIES."""
    index = [slot.name for slot in template.slots].index(HERO)

    def choose() -> list[int]:
        fillers = [below(drawer.random, slot.size) for slot in template.slots]
        return [*fillers[:index], person, *fillers[index + 1 :]]

    return drawer.find(template, choose, TRIES)


def joined(sentences: Iterable[DemoSentence], language: str) -> str:
    """Return one text; Chinese and Japanese have no spaces between sentences."""
    space = "" if language in ("zh", "ja") else " "
    return space.join(sentence.texts[language] for sentence in sentences)


def read_labels(module: str) -> Any:
    """Read a demo set's labels from the YAML next to the module with this `__file__`."""
    return parse_yaml(Path(module).with_suffix(".yaml").read_text("utf-8"))
