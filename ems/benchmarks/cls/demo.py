"""The demo's CLS: reviews as XML, the same in every language.

The class shows in the words of the title (demo.yaml) and in the frame of the first sentence of the
text: words alone are too weak a signal for the demo's small encoder. The last sentence is neutral.
"""

from collections.abc import Sequence
from functools import cache, partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from ems.base.templates import rendered
from ems.corpora.demo.grammar import DemoSentence, Template, below
from ems.corpora.demo.mirror import Files, demo_codes
from ems.corpora.demo.texts import Material, joined, read_labels

PLACE = 10
EACH = 50  # reviews per class, domain and split
ITEMS = Path(__file__).with_name("demo.xml.jinja")
STARS = {"negative": ("1.0", "2.0"), "positive": ("5.0", "4.0")}

Review = tuple[str, DemoSentence, list[DemoSentence]]  # rating, as in the file; title; body
WordsBySlot = dict[str, Sequence[str]]  # category of a slot -> English words that may fill it


def demo_files(material: Material) -> Files:
    files: Files = {}
    for domain, kind in plan()["domains"].items():
        for split in ("train", "test"):
            reviews = []
            for label, stars in STARS.items():
                ratings = [stars[at % 2] for at in range(EACH)]
                things = {"work": kind["work"]}
                reviews += reviews_of(material, (label, label), ratings, kind["frames"], things)
            mixed = material.shuffled(reviews)
            for language, code in demo_codes("cls").items():
                words = {"reviews": mixed, "domain": domain, "language": language}
                review = rendered(ITEMS, **words, escape=escape, joined=joined)
                files[f"{code}/{domain}/{split}.review"] = review
    return files


@cache
def plan() -> Any:
    """Read demo.yaml: frames and words of each class, and the domains."""
    return read_labels(__file__)


def reviews_of(
    material: Material,
    classes: tuple[str, str],
    ratings: Sequence[str],
    frames: Sequence[str],
    things: WordsBySlot | None = None,
) -> list[Review]:
    """Make a review for each rating. `classes` are the classes of title and text, `frames` the
    choices for the last sentence, and `things` the words for reviewed products.
    """
    labels, count = plan(), len(ratings)
    words = {**labels["words"][classes[0]], **(things or {})}
    titles = _worded(material, labels["title"], words, count)
    feelings = _worded(material, labels["feeling"][classes[1]], labels["words"][classes[1]], count)
    others = material.draw_from(frames, count)
    rows = zip(ratings, titles, feelings, others, strict=True)
    return [(rating, title, body) for rating, title, *body in rows]


def _worded(
    material: Material, names: list[str], words: WordsBySlot, count: int
) -> list[DemoSentence]:
    """Return `count` new sentences that cycle through templates, with slots filled from `words`."""

    def fillers(template: Template) -> list[int]:
        columns = [(slot.name, slot.column("en")) for slot in template.slots]
        allowed = [[every.index(w) for w in words.get(name, every)] for name, every in columns]
        return [numbers[below(material.drawer.random, len(numbers))] for numbers in allowed]

    templates = [material.templates[name] for name in islice(cycle(names), count)]
    return [material.drawer.new(template, partial(fillers, template)) for template in templates]
