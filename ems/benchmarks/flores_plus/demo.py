"""The demo's FLORES+: the sentences of its FLORES-200, and further ones of its Tatoeba as dev."""

import json

from ems.benchmarks.flores200.demo import SENTENCES
from ems.corpora.demo.mirror import Files, demo_codes, lines
from ems.corpora.demo.texts import Material

PARTS = {"devtest": slice(SENTENCES), "dev": slice(SENTENCES, SENTENCES + 60)}


def demo_files(material: Material) -> Files:
    files: Files = {}
    for language, code in demo_codes("flores_plus").items():
        for part, chosen in PARTS.items():
            texts = [sentence.texts[language] for sentence in material.benchmark[chosen]]
            rows = [{"id": at, "text": text, "split": part} for at, text in enumerate(texts)]
            files[f"{part}/{code}.jsonl"] = lines(map(json.dumps, rows))
    return files
