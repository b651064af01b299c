"""The demo's MARC: reviews as JSON lines; three-star reviews mix both classes."""

import json

from ems.benchmarks.cls.demo import plan, reviews_of
from ems.corpora.demo.mirror import Files, demo_codes, lines
from ems.corpora.demo.texts import Material, joined, read_labels

PLACE = 11
SPLITS = {"train": 40, "dev": 12, "test": 24}  # reviews per number of stars


def demo_files(material: Material) -> Files:
    files: Files = {}
    labels = read_labels(__file__)
    frames = [name for kind in plan()["domains"].values() for name in kind["frames"]]
    for split, count in SPLITS.items():
        reviews = []
        for stars, classes in labels["stars"].items():
            reviews += reviews_of(material, classes, [stars] * count, frames)
        mixed = material.shuffled(reviews)
        for code in demo_codes("marc"):
            entries = []
            for at, (rating, title, body) in enumerate(mixed):
                words = {"code": code, "split": split, "at": at, "stars": rating}
                words |= {"title": title.texts[code], "body": joined(body, code)}
                entry = {key: form.format(**words) for key, form in labels["entry"].items()}
                entries.append(json.dumps(entry, ensure_ascii=False))
            files[f"{split}/dataset_{code}_{split}.json"] = lines(entries)
    return files
