"""Documents of a benchmark: reviews and news, with a class each, and their sentences.

Decontamination takes the whole text, its title, each line and each sentence: parallel corpora hold
sentences, so they never hold a document as a whole. Sentences end at . ! ? … before white space, at
。！？ and at line ends. This cuts too often (after "Mr."), which costs a few more keys, but needs
no model. No part is too short to be a key: training loses "Super!" if a review says it, and the
decontamination report counts that.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_ENDS = re.compile(r"\s*\n\s*|(?<=[.!?…])\s+|(?<=[。！？])\s*")


@dataclass(frozen=True)
class Document:
    """A text with its class ('' where it has none) and its title ('' where it has none)."""

    label: str
    title: str
    text: str


@dataclass(frozen=True)
class Place:
    """One part of a set of documents: language (its code in the set), domain ('' for none), part.

    The part is "train", "valid" or "test".
    """

    code: str
    domain: str
    part: str


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without white space around them and without empty ones."""
    return [part for part in map(str.strip, _ENDS.split(text)) if part]


def parts(documents: Iterable[Document]) -> Iterator[str]:
    """Return what training must not see of documents: title, text, and each sentence of both."""
    for document in documents:
        for text in filter(None, (document.title, document.text)):
            yield text
            cut = sentences(text)
            if len(cut) > 1:
                yield from cut
