"""The demo's MARC: reviews as JSON lines; three-star reviews mix both classes."""

import json

from ems.benchmarks.cls.demo import plan, reviews_of
from ems.corpora.demo.mirror import Files, demo_codes, lines
from ems.corpora.demo.texts import Material, read_labels

PLACE = 11
SPLITS = {"train": 40, "dev": 12, "test": 24}  # reviews per number of stars


def demo_files(material: Material) -> Files:
    files: Files = {}
    frames = [name for kind in plan()["domains"].values() for name in kind["frames"]]
    for split, count in SPLITS.items():
        reviews = []
        for stars, classes in read_labels(__file__).items():
            reviews += reviews_of(material, classes, [stars] * count, frames)
        mixed = material.shuffled(reviews)
        for code in demo_codes("marc"):
            entries = [
                {
                    "review_id": f"{code}_{split}_{at:07}",
                    "product_id": f"product_{code}_{at:07}",
                    "reviewer_id": f"reviewer_{code}_{at:07}",
                    "stars": review.rating,
                    "review_body": review.text(code),
                    "review_title": review.title.texts[code],
                    "language": code,
                    "product_category": "book",
                }
                for at, review in enumerate(mixed)
            ]
            written = (json.dumps(entry, ensure_ascii=False) for entry in entries)
            files[f"{split}/dataset_{code}_{split}.json"] = lines(written)
    return files
