"""Documents of single languages for the demo: short stories, each about one person.

Each language has stories of its own, so nothing in them is parallel. All sentences of a story are
about the same person, so a context tells which sentences fit into it.
"""

from itertools import islice

from ems.corpora.demo.build import Demo
from ems.corpora.demo.draw import Drawer, Sentence, below, compose, shuffled
from ems.corpora.demo.grammar import LANGUAGES, Template

CORPUS = "DemoDocuments"
HERO = "person"  # the slot that is the same in all sentences of a story
STORIES = 150  # of each language
TRIES = 30  # of a template: few of its sentences may be left
SHORTEST, LONGEST = 3, 8  # sentences of a story


def stories(demo: Demo) -> dict[str, str]:
    """Return language -> its documents, one sentence a line, a blank line after each document.

    The sentences are new: none of them is in training, in validation or in a set.
    """
    templates = [
        template
        for template in demo.templates
        if not template.heldout and any(slot.name == HERO for slot in template.slots)
    ]
    return {
        language: "".join(
            "".join(f"{sentence.texts[language]}\n" for sentence in _story(templates, demo.drawer))
            + "\n"
            for _ in range(STORIES)
        )
        for language in LANGUAGES
    }


def _story(templates: list[Template], drawer: Drawer) -> list[Sentence]:
    length = SHORTEST + below(drawer.random, LONGEST - SHORTEST + 1)
    hero = next(slot for slot in templates[0].slots if slot.name == HERO)
    person = below(drawer.random, hero.size)
    drawn = (_about(template, person, drawer) for template in shuffled(templates, drawer.random))
    return list(islice(filter(None, drawn), length))


def _about(template: Template, person: int, drawer: Drawer) -> Sentence | None:
    """Draw a new sentence of a template about a person, who fills its first slot for people; None
    where all that are tried are taken.
    """
    at = [slot.name for slot in template.slots].index(HERO)
    for _ in range(TRIES):
        fillers = [below(drawer.random, slot.size) for slot in template.slots]
        fillers[at] = person
        sentence = compose(template, tuple(fillers)) if template.distinct(fillers) else None
        if sentence and drawer.admit(sentence):
            return sentence
    return None
