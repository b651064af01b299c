"""The demo's WMT24++: new sentences, the same in every language."""

import json

from ems.benchmarks.wmt24pp.data import file_names
from ems.corpora.demo.mirror import Files, demo_codes, lines
from ems.corpora.demo.texts import Material

SENTENCES = 100


def demo_files(material: Material) -> Files:
    segments = [sentence.texts for sentence in material.draw(SENTENCES)]
    files: Files = {}
    for code in sorted(demo_codes("wmt24pp").keys() - {"en"}):
        rows = [{"source": each["en"], "target": each[code]} for each in segments]
        texts = [json.dumps({"is_bad_source": False} | row, ensure_ascii=False) for row in rows]
        files |= dict.fromkeys(file_names(code), lines(texts))
    return files
