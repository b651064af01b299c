"""The demo's BOUQuET, as JSON lines: the sentences of its FLORES+, and in paragraphs of four."""

import json
from itertools import product

from ems.benchmarks.flores_plus.demo import PARTS
from ems.corpora.demo.mirror import Files, demo_codes, lines
from ems.corpora.demo.texts import Material

SPLITS, LEVELS = {"test": "devtest", "dev": "dev"}, {"sentence": 1, "paragraph": 4}


def demo_files(material: Material) -> Files:
    files: Files = {}
    places = product(demo_codes("bouquet").items(), SPLITS, LEVELS.items())
    for (language, code), split, (level, size) in places:
        texts = [sentence.texts[language] for sentence in material.benchmark[PARTS[SPLITS[split]]]]
        starts = range(0, len(texts), size)
        rows = [
            {"uniq_id": f"P{at:03}", "src_text": " ".join(texts[at : at + size])} for at in starts
        ]
        files[f"data/{level}_level/{split}/{code}.jsonl"] = lines(map(json.dumps, rows))
    return files
