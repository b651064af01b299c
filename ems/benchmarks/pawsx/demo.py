"""The demo's PAWS-X: pairs of sentences with different frames, half of them paraphrases.

The second sentence always has another frame (demo.yaml), so that word order does not reveal the
label: the same fillers make a paraphrase (1), one replaced slot makes none (0). The letters nearly
always reveal it, so the set is easier than the real one. It lacks Korean, as the demo does.
"""

from pathlib import Path

from ems.base.errors import mistake
from ems.corpora.demo.grammar import read_frames
from ems.corpora.demo.mirror import Files, demo_codes, table
from ems.corpora.demo.texts import Material

PLACE = 9
PAIRS = {"dev": 120, "test": 200}
HEADER = ("id", "sentence1", "sentence2", "label")


def demo_files(material: Material) -> Files:
    """Return dev and test of each language; row n is the same pair in every language."""
    files: Files = {}
    reworded = read_frames(Path(__file__).with_name("demo.yaml"))
    for split, count in PAIRS.items():
        pairs = []
        for at, first in enumerate(material.draw_from(list(reworded), count)):
            meaning = first if at % 2 else material.drawer.neighbour(first)
            name = first.template.name
            second = reworded[name].sentence(meaning.fillers)
            if not material.drawer.admit(second):
                raise mistake("sentence exists", name=name, sentence=second.texts["en"])
            pairs.append((first.texts, second.texts, str(at % 2)))
        pairs = material.shuffled(pairs)
        for code in demo_codes("pawsx"):
            own = [(first[code], second[code], label) for first, second, label in pairs]
            rows = [(str(at), *row) for at, row in enumerate(own, start=1)]
            files[f"{code}/{split}_2k.tsv"] = table([HEADER, *rows])
    return files
