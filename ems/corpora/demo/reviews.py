"""The demo's reviews, of which both Amazon sets are made.

As in a real review the class occurs more than once: in the words of the title (reviews.yaml) and in
the frame of the text's first sentence, since words alone are lost on an encoder as small as the
demo's. A last sentence says nothing of it. A review is the same in every language of its set, and no
sentence is in two reviews.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ems.corpora.demo.draw import Sentence
from ems.corpora.demo.material import Material, Words, labels_beside

SPACELESS = ("zh", "ja")  # no space between their sentences


@dataclass(frozen=True)
class Review:
    """A review in all languages; `rating` as the set writes it."""

    rating: str
    title: Sentence
    body: tuple[Sentence, ...]

    def text(self, language: str) -> str:
        """Return the text below the title."""
        space = "" if language in SPACELESS else " "
        return space.join(sentence.texts[language] for sentence in self.body)


@cache
def plan() -> Any:
    """Return reviews.yaml: frames and words of each class, and the domains."""
    return labels_beside(__file__)


def reviews_of(
    material: Material,
    classes: tuple[str, str],
    ratings: Sequence[str],
    frames: Sequence[str],
    things: Words | None = None,
) -> list[Review]:
    """Return a review for each rating: `classes` of title and text, `frames` of the last sentence.

    `things` are the words for what is reviewed.
    """
    labels, count = plan(), len(ratings)
    words = {**labels["words"][classes[0]], **(things or {})}
    titles = material.worded(labels["title"], words, count)
    feelings = material.worded(labels["feeling"][classes[1]], labels["words"][classes[1]], count)
    others = material.of(frames, count)
    return [
        Review(rating, title, tuple(body))
        for rating, title, *body in zip(ratings, titles, feelings, others, strict=True)
    ]
