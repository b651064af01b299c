"""Which of the demo's sentences go where: benchmark, validation, training, leak, and further texts.

Half of the benchmark comes from frames that training never sees. A third of each language's
training pairs has English sides that every language shares; the rest is a third of a common pool.
One drawer draws everything, so no sentence is in two places, unless a set's own description says
so. What is drawn later changes nothing before.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from ems.base.errors import EmsError
from ems.config.load import parse_yaml
from ems.corpora.demo.grammar import (
    HERE,
    LANGUAGES,
    OTHERS,
    DemoSentence,
    Drawer,
    Template,
    below,
    key,
    read_frames,
    read_free,
    read_lexicon,
    shuffled,
)

SEED = 20250101
BENCH_HELDOUT, BENCH_FREE, BENCH_TRAIN = 300, 40, 260
DEV_FREE, DEV_TRAIN = 20, 280
COMMON, OWN, POOL = 6_000, 12_000, 36_000  # training pairs: of all languages, of one, drawn from
LEAKED_OF_A_KIND = 40  # verbatim, disguised, one side alone
LEAKED_PAIRS = 3 * LEAKED_OF_A_KIND
HERO = "person"  # the slot that is the same in all sentences of a story
STORIES = 150  # of each language
SHORTEST, LONGEST = 3, 8  # sentences of a story
TRIES = 30  # of a template for a story: few of its sentences may be left

TextPair = tuple[str, str]  # English, other language


@dataclass(frozen=True)
class Material:
    """The demo corpus (`leak` is not in `train`), all templates, and what draws new sentences."""

    benchmark: list[DemoSentence]
    dev: list[DemoSentence]
    train: dict[str, list[DemoSentence]]
    leak: dict[str, list[TextPair]]
    templates: dict[str, Template]
    drawer: Drawer

    def any(self, count: int) -> list[DemoSentence]:
        """Return `count` new sentences, equally many of each template, in random order."""
        return self.of(list(self.templates), count)

    def of(self, names: Sequence[str], count: int) -> list[DemoSentence]:
        """Return `count` new sentences, equally many of each of these templates."""
        return self.drawer.draw_evenly([self.templates[name] for name in names], count)

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        return shuffled(items, self.drawer.random)


def build() -> Material:
    """Make the corpus: the same sentences in the same order each time."""
    random = Random(SEED)
    drawer = Drawer(random)
    free = [DemoSentence(texts) for texts in shuffled(read_free(), random)]
    if not all(drawer.admit(sentence) for sentence in free):
        raise EmsError("free.tsv: two sentences have the same letters in one of the languages")
    templates = read_frames(HERE / "train.yaml", heldout=False)
    known = list(templates.values())
    templates |= read_frames(HERE / "heldout.yaml")
    heldout = drawer.draw_evenly([t for t in templates.values() if t.heldout], BENCH_HELDOUT)
    free_train = free[BENCH_FREE + DEV_FREE :]
    wanted = BENCH_TRAIN + DEV_TRAIN + COMMON - len(free_train) + POOL
    drawn = iter(drawer.draw_evenly(known, wanted))
    benchmark = [*heldout, *free[:BENCH_FREE], *islice(drawn, BENCH_TRAIN)]
    dev = [*free[BENCH_FREE:][:DEV_FREE], *islice(drawn, DEV_TRAIN)]
    common = [*free_train, *islice(drawn, COMMON - len(free_train))]
    pool = list(drawn)
    train = {language: [*common, *shuffled(pool, random)[:OWN]] for language in OTHERS}
    leak = {language: _leak(benchmark, language, drawer) for language in OTHERS}
    benchmark, dev = shuffled(benchmark, random), shuffled(dev, random)
    return Material(benchmark, dev, train, leak, templates, drawer)


# --- the leak: benchmark pairs in training, for decontamination to find


def _leak(benchmark: Sequence[DemoSentence], language: str, drawer: Drawer) -> list[TextPair]:
    """Return LEAKED_PAIRS: verbatim, in disguise on both sides, and one side with a neighbour's."""
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
    """Return `text` in disguise `number`, or in the next that keeps its key ("ß" becomes "SS")."""
    wide = {code: code + 0xFEE0 for code in range(0x21, 0x7F)} | str.maketrans(
        "。，？！、", ".,?!,"
    )
    apart = text.replace(" ", " \u00a0") if " " in text else f"{text[:-2]}\u3000{text[-2:]}"
    disguises = (
        text.upper() + "!!",
        # ASCII in full width, full-width marks as ASCII, some Arabic as ligatures
        text.translate(wide).replace("لا", "ﻻ").replace(".", "…"),
        f"{apart.rstrip('.。')} .",  # doubled and no-break spaces, or one before the last letter
        "« " + unicodedata.normalize("NFD", text.lower()) + " »",  # letters and marks apart
        "– " + text.lower().rstrip(".。!！?？؟ ") + " –",  # a line of dialogue
    )
    for turn in range(len(disguises)):
        changed = disguises[(number + turn) % len(disguises)]
        if changed != text and key(changed) == key(text):
            return changed
    raise EmsError(f"no disguise keeps the key of {text!r}")


# --- stories: documents of single languages


def stories(material: Material) -> dict[str, str]:
    """Return language -> its documents, one sentence a line, a blank line after each document.

    Nothing in them is parallel. All sentences of a story are about the same person, so a context
    tells which sentences fit into it.
    """
    random, people = material.drawer.random, read_lexicon()[HERO]
    learnt = [template for template in material.templates.values() if not template.heldout]
    templates = [template for template in learnt if people in template.slots]
    texts = {}
    for language in LANGUAGES:
        lines = []
        for _ in range(STORIES):
            length = SHORTEST + below(random, LONGEST - SHORTEST + 1)
            person = below(random, people.size)
            about = (_about(person, t, material.drawer) for t in shuffled(templates, random))
            lines += [s.texts[language] for s in islice(filter(None, about), length)] + [""]
        texts[language] = "\n".join(lines) + "\n"
    return texts


def _about(person: int, template: Template, drawer: Drawer) -> DemoSentence | None:
    """Return a new sentence whose first slot for people holds `person`, or None."""
    index = [slot.name for slot in template.slots].index(HERO)

    def choose() -> list[int]:
        fillers = [below(drawer.random, slot.size) for slot in template.slots]
        return [*fillers[:index], person, *fillers[index + 1 :]]

    return drawer.find(template, choose, TRIES)


def labels_beside(module: str) -> Any:
    """Return the labels of a set and what they stand for: the .yaml beside a module's `__file__`."""
    return parse_yaml(Path(module).with_suffix(".yaml").read_text("utf-8"))
