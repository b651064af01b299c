"""The demo's PAWS-X: pairs of sentences of different frames, half of them paraphrases.

The second sentence is always of another frame than the first (demo.yaml), so that the order of
words says nothing: with the same fillers it is a paraphrase (1), with one slot exchanged not (0).
The letters tell the label nearly always, so the set is easier than the real one. It lacks Korean,
as the demo does.
"""

from pathlib import Path

from ems.base.errors import EmsError
from ems.corpora.demo.grammar import read_frames
from ems.corpora.demo.mirror import Files, demo_codes, table
from ems.corpora.demo.texts import Material

PLACE = 9
PAIRS = {"dev": 120, "test": 200}
HEADER = ("id", "sentence1", "sentence2", "label")


def demo_files(material: Material) -> Files:
    """Return dev and test of each language; rows n of all are translations of one another.

    Raises `EmsError` if another sentence says already what a reworded one says.
    """
    files: Files = {}
    reworded = read_frames(Path(__file__).with_name("demo.yaml"))
    for split, count in PAIRS.items():
        pairs = []
        for at, first in enumerate(material.draw_from(list(reworded), count)):
            meaning = first if at % 2 else material.drawer.neighbour(first)
            name = first.template.name
            second = reworded[name].sentence(meaning.fillers)
            if not material.drawer.admit(second):
                raise EmsError(
                    f"template {name}: another sentence is {second.texts['en']!r} already"
                )
            pairs.append((first.texts, second.texts, str(at % 2)))
        pairs = material.shuffled(pairs)
        for code in demo_codes("pawsx"):
            rows = [
                (str(at), first[code], second[code], label)
                for at, (first, second, label) in enumerate(pairs, start=1)
            ]
            files[f"{code}/{split}_2k.tsv"] = table([HEADER, *rows])
    return files
