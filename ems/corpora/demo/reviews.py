"""The demo's reviews: Amazon version 1 (CLS, XML) and 2 (MARC, a JSON object a line).

Notable choices:
- the class is told more than once, as in a real review: the title says what somebody thinks of the
  thing, with words of the class only (`labels.yaml`), the first sentence of the text how somebody
  feels, in frames of the class too, since words alone are lost on an encoder as small as the
  demo's; a last sentence tells nothing. Reviews of three stars have a title and a text of two
  classes;
- a review is the same in every language of its set, since all of its sentences are translations; no
  sentence is in two reviews, so what a classifier learns from is not what it is tested on;
- CLS lacks the files `unlabeled`, which nobody reads.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from ems.corpora.demo.draw import Sentence
from ems.corpora.demo.material import Files, Material

CLS_CODES = {"en": "en", "de": "de", "fr": "fr", "ja": "jp"}
CLS_SPLITS = {"train": 100, "test": 100}  # reviews of each domain, half of either class
CLS_STARS = {"negative": ("1.0", "2.0"), "positive": ("5.0", "4.0")}
MARC_CODES = ("de", "en", "es", "fr", "ja", "zh")
MARC_SPLITS = {"train": 40, "dev": 12, "test": 24}  # reviews of each number of stars
MARC_CLASSES = {  # stars -> class of the title, of the text
    1: ("negative", "negative"),
    2: ("negative", "negative"),
    3: ("positive", "negative"),
    4: ("positive", "positive"),
    5: ("positive", "positive"),
}
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


def cls(material: Material) -> Files:
    """Return `<xx>/<domain>/{train,test}.review`."""
    files: Files = {}
    domains: dict[str, dict[str, Any]] = material.labels["reviews"]["domains"]
    for domain, kind in domains.items():
        for split, count in CLS_SPLITS.items():
            reviews = []
            for label, stars in CLS_STARS.items():
                ratings = [stars[at % 2] for at in range(count // 2)]
                reviews += _reviews(material, (label, label), ratings, kind)
            mixed = material.shuffled(reviews)
            for language, code in CLS_CODES.items():
                files[f"{code}/{domain}/{split}.review"] = _items(mixed, language, domain)
    return files


def marc(material: Material) -> Files:
    """Return `<split>/dataset_<xx>_<split>.json`."""
    files: Files = {}
    domains: list[dict[str, Any]] = list(material.labels["reviews"]["domains"].values())
    frames = [name for kind in domains for name in kind["frames"]]
    for split, count in MARC_SPLITS.items():
        reviews = []
        for stars, classes in MARC_CLASSES.items():
            reviews += _reviews(material, classes, [str(stars)] * count, {"frames": frames})
        mixed = material.shuffled(reviews)
        for code in MARC_CODES:
            entries = [_entry(review, code, split, at) for at, review in enumerate(mixed)]
            files[f"{split}/dataset_{code}_{split}.json"] = "".join(
                json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries
            )
    return files


def _reviews(
    material: Material, classes: tuple[str, str], ratings: Sequence[str], kind: dict[str, Any]
) -> list[Review]:
    """A review for each rating: `classes` of title and text, `kind` of thing reviewed."""
    plan, count = material.labels["reviews"], len(ratings)
    works = {"work": kind["work"]} if "work" in kind else {}
    titles = material.worded(plan["title"], {**plan["words"][classes[0]], **works}, count)
    feelings = material.worded(plan["feeling"][classes[1]], plan["words"][classes[1]], count)
    others = material.of(kind["frames"], count)
    return [
        Review(rating, title, tuple(body))
        for rating, title, *body in zip(ratings, titles, feelings, others, strict=True)
    ]


def _items(reviews: Sequence[Review], language: str, domain: str) -> str:
    """The reviews as CLS writes them."""
    items = [
        f"<item><category>{domain}</category><rating>{review.rating}</rating><asin>{at:010}</asin>\n"
        f"<text>{escape(review.text(language))}</text>\n"
        f"<summary>{escape(review.title.texts[language])}</summary></item>\n"
        for at, review in enumerate(reviews)
    ]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<items>\n'
    return "".join([head, *items, "</items>\n"])


def _entry(review: Review, code: str, split: str, at: int) -> dict[str, str]:
    """A review as MARC writes it."""
    return {
        "review_id": f"{code}_{split}_{at:07}",
        "product_id": f"product_{code}_{at:07}",
        "reviewer_id": f"reviewer_{code}_{at:07}",
        "stars": review.rating,
        "review_body": review.text(code),
        "review_title": review.title.texts[code],
        "language": code,
        "product_category": "book",
    }
