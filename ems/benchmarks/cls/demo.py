"""The demo's CLS: reviews as XML, without the files `unlabeled`, which no benchmark reads."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from ems.corpora.demo.material import Files, Material
from ems.corpora.demo.reviews import Review, plan, reviews_of

PLACE = 10
CODES = {"en": "en", "de": "de", "fr": "fr", "ja": "jp"}
EACH = 50  # reviews of either class, in each domain and split
STARS = {"negative": ("1.0", "2.0"), "positive": ("5.0", "4.0")}


def made(material: Material) -> Files:
    """Return `<xx>/<domain>/{train,test}.review`."""
    files: Files = {}
    for domain, kind in plan()["domains"].items():
        for split in ("train", "test"):
            reviews = []
            for label, stars in STARS.items():
                ratings = [stars[at % 2] for at in range(EACH)]
                reviews += reviews_of(
                    material, (label, label), ratings, kind["frames"], {"work": kind["work"]}
                )
            mixed = material.shuffled(reviews)
            for language, code in CODES.items():
                files[f"{code}/{domain}/{split}.review"] = _items(mixed, language, domain)
    return files


def _items(reviews: Sequence[Review], language: str, domain: str) -> str:
    """Return the reviews as CLS writes them."""
    items = [
        f"<item><category>{domain}</category><rating>{review.rating}</rating><asin>{at:010}</asin>\n"
        f"<text>{escape(review.text(language))}</text>\n"
        f"<summary>{escape(review.title.texts[language])}</summary></item>\n"
        for at, review in enumerate(reviews)
    ]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<items>\n'
    return "".join([head, *items, "</items>\n"])
