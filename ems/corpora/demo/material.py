"""What the demo's evaluation sets are made of: new sentences of its grammar, and their labels.

One drawer draws everything after the corpus: no sentence of a set is in training, in validation or
in another set, unless the set's own description says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import yaml

from ems.base.errors import EmsError
from ems.corpora.demo.build import Demo
from ems.corpora.demo.draw import Drawer, Sentence, below, compose, draw_evenly, shuffled
from ems.corpora.demo.grammar import HERE, Template, read_frames, read_lexicon

Files = dict[str, str | bytes]  # of a set: name below its folder -> content
Words = dict[str, Sequence[str]]  # slot's category -> the English words that may fill it


@dataclass(frozen=True)
class Material:
    """The corpus, and what the sets take from its grammar."""

    demo: Demo

    @property
    def drawer(self) -> Drawer:
        """The drawer of sentences that are nowhere yet."""
        return self.demo.drawer

    @cached_property
    def templates(self) -> dict[str, Template]:
        """The templates of training and the held-out ones, by name."""
        return {template.name: template for template in self.demo.templates}

    @cached_property
    def reworded(self) -> dict[str, Template]:
        """Second frames of some templates, by the same names."""
        frames = read_frames(HERE / "reworded.yaml", True, read_lexicon())
        return {template.name: template for template in frames}

    def any(self, count: int) -> list[Sentence]:
        """Return `count` new sentences, of all templates alike, in random order."""
        return draw_evenly(self.drawer, self.demo.templates, count)

    def of(self, names: Sequence[str], count: int) -> list[Sentence]:
        """Return `count` new sentences of these templates alike, in random order."""
        return draw_evenly(self.drawer, [self.templates[name] for name in names], count)

    def worded(self, names: Sequence[str], words: Words, count: int) -> list[Sentence]:
        """Return `count` new sentences of these templates in turn, slots filled with `words`."""
        turns = islice(cycle(names), count)
        return [self._worded(self.templates[name], words) for name in turns]

    def _worded(self, template: Template, words: Words) -> Sentence:
        columns = {slot.name: slot.column("en", None) for slot in template.slots}
        allowed = [
            [columns[slot.name].index(word) for word in words.get(slot.name, columns[slot.name])]
            for slot in template.slots
        ]
        for _ in range(1000):
            fillers = tuple(some[below(self.drawer.random, len(some))] for some in allowed)
            sentence = compose(template, fillers) if template.distinct(fillers) else None
            if sentence and self.drawer.admit(sentence):
                return sentence
        raise EmsError(f"template {template.name}: no unused sentence with the words {words}")

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        """Return the items in random order."""
        return shuffled(items, self.drawer.random)


def labels_beside(module: str) -> Any:
    """Return the labels of a set and what they stand for: the .yaml beside a module's `__file__`."""
    return yaml.safe_load(Path(module).with_suffix(".yaml").read_text("utf-8"))


def changed_slot(one: Sentence, other: Sentence) -> str:
    """Return the category of the slot in which two sentences of one template differ."""
    template = one.template
    if template is None or template is not other.template:
        raise EmsError("expected two sentences of one template")
    slots = zip(template.slots, one.fillers, other.fillers, strict=True)
    (changed,) = [slot for slot, before, after in slots if before != after]
    return changed.name


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return tab-separated lines."""
    return "".join("\t".join(row) + "\n" for row in rows)
