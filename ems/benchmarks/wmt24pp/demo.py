"""The demo's WMT24++: the first sentences of its Tatoeba, in all four domains, after a canary."""

import json
from itertools import cycle
from pathlib import Path

from ems.benchmarks.flores200.demo import SENTENCES
from ems.corpora.demo.grammar import OTHERS
from ems.corpora.demo.mirror import Files, lines
from ems.corpora.demo.texts import Material

DOMAINS = ("news", "social", "speech", "literary")
CANARY = {"domain": "canary", "is_bad_source": True, "source": "CANARY", "target": "CANARY"}


def demo_files(material: Material) -> Files:
    files: Files = {}
    regions = Path(__file__).with_name("regions.txt").read_text("utf-8").split()
    for region in (name for name in regions if name.partition("_")[0] in OTHERS):
        rows = [CANARY]
        for domain, sentence in zip(cycle(DOMAINS), material.benchmark[:SENTENCES], strict=False):
            source, target = sentence.pair(region.partition("_")[0])
            sides = {"source": source, "target": target}
            rows.append({"domain": domain, "is_bad_source": False, **sides})
        files[f"en-{region}.jsonl"] = lines(json.dumps(row, ensure_ascii=False) for row in rows)
    return files
