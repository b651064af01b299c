"""The demo's PAWS-X: pairs of sentences of different frames, half of them paraphrases.

The second sentence is always of another frame than the first (`reworded.yaml`), so that the order
of words says nothing: with the same fillers it is a paraphrase (1), with one slot exchanged not
(0). The letters tell the label nearly always, so the set is easier than the real one. It lacks
Korean, as the demo does.
"""

from ems.base.errors import EmsError
from ems.corpora.demo.grammar import Sentence
from ems.corpora.demo.mirror import Files, table
from ems.corpora.demo.texts import Material

PLACE = 9
CODES = ("de", "en", "es", "fr", "ja", "zh")
PAIRS = {"dev": 120, "test": 200}
HEADER = ("id", "sentence1", "sentence2", "label")


def made(material: Material) -> Files:
    """Return dev and test of each language; rows n of all are translations of one another."""
    files: Files = {}
    for split, count in PAIRS.items():
        pairs = _paraphrases(material, count)
        for code in CODES:
            rows = [
                (str(at), first.texts[code], second.texts[code], label)
                for at, (first, second, label) in enumerate(pairs, start=1)
            ]
            files[f"{code}/{split}_2k.tsv"] = table([HEADER, *rows])
    return files


def _paraphrases(material: Material, count: int) -> list[tuple[Sentence, Sentence, str]]:
    """Return (sentence, sentence, label), half of either label, in random order."""
    pairs = []
    for at, first in enumerate(material.of(list(material.reworded), count)):
        meaning = first if at % 2 else material.drawer.neighbour(first)
        pairs.append((first, _reworded(material, meaning), str(at % 2)))
    return material.shuffled(pairs)


def _reworded(material: Material, sentence: Sentence) -> Sentence:
    """Return the same in its second frame. Raises `EmsError` if another sentence says that."""
    name = sentence.template.name if sentence.template else ""
    other = material.reworded[name].sentence(sentence.fillers)
    if not material.drawer.admit(other):
        raise EmsError(f"template {name}: another sentence is {other.texts['en']!r} already")
    return other
