"""The demo's PAWS-X: pairs of sentences of different frames, half of them paraphrases.

The second sentence is always of another frame than the first (demo.yaml), so that the order of
words says nothing: with the same fillers it is a paraphrase (1), with one slot exchanged not (0).
The letters tell the label nearly always, so the set is easier than the real one. It lacks Korean,
as the demo does.
"""

from pathlib import Path

from ems.base.errors import EmsError
from ems.corpora.demo.grammar import Sentence, Template, read_frames
from ems.corpora.demo.mirror import Files, table
from ems.corpora.demo.texts import Material

PLACE = 9
REWORDED = Path(__file__).with_name("demo.yaml")
CODES = ("de", "en", "es", "fr", "ja", "zh")
PAIRS = {"dev": 120, "test": 200}
HEADER = ("id", "sentence1", "sentence2", "label")


def made(material: Material) -> Files:
    """Return dev and test of each language; rows n of all are translations of one another."""
    files: Files = {}
    reworded = read_frames(REWORDED)
    for split, count in PAIRS.items():
        pairs = _paraphrases(material, reworded, count)
        for code in CODES:
            rows = [
                (str(at), first.texts[code], second.texts[code], label)
                for at, (first, second, label) in enumerate(pairs, start=1)
            ]
            files[f"{code}/{split}_2k.tsv"] = table([HEADER, *rows])
    return files


def _paraphrases(
    material: Material, reworded: dict[str, Template], count: int
) -> list[tuple[Sentence, Sentence, str]]:
    """Return (sentence, sentence, label), half of either label, in random order.

    Raises `EmsError` if another sentence says what a reworded one does.
    """
    pairs = []
    for at, first in enumerate(material.of(list(reworded), count)):
        meaning = first if at % 2 else material.drawer.neighbour(first)
        second = reworded[first.template.name].sentence(meaning.fillers)
        if not material.drawer.admit(second):
            name = first.template.name
            raise EmsError(f"template {name}: another sentence is {second.texts['en']!r} already")
        pairs.append((first, second, str(at % 2)))
    return material.shuffled(pairs)
