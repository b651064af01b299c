"""The demo's PAWS-X: pairs of sentences of different frames, half of them paraphrases.

The second sentence is always of another frame than the first (`reworded.yaml`), so that the order
of words says nothing: with the same fillers it is a paraphrase (1), with one slot exchanged not
(0). Which letters there are tells the label nearly always, so that the set is easy where the real
one, which exchanges words of one sentence, is hard. It lacks Korean, as the demo does.
"""

from ems.corpora.demo.draw import Sentence, compose
from ems.corpora.demo.material import Files, Material, table
from ems.errors import EmsError

CODES = ("de", "en", "es", "fr", "ja", "zh")
PAIRS = {"dev": 120, "test": 200}


def made(material: Material) -> Files:
    """Return dev and test of each language; rows n of all are translations of one another."""
    files: Files = {}
    head = ("id", "sentence1", "sentence2", "label")
    for split, count in PAIRS.items():
        found = _paraphrases(material, count)
        for code in CODES:
            rows = [
                (str(at), first.texts[code], second.texts[code], label)
                for at, (first, second, label) in enumerate(found, start=1)
            ]
            files[f"{code}/{split}_2k.tsv"] = table([head, *rows])
    return files


def _paraphrases(material: Material, count: int) -> list[tuple[Sentence, Sentence, str]]:
    """(sentence, sentence, label), half of either label, in random order."""
    found = []
    for at, first in enumerate(material.of(list(material.reworded), count)):
        same = at % 2
        meaning = first if same else material.drawer.neighbour(first)
        found.append((first, _reworded(material, meaning), str(same)))
    return material.shuffled(found)


def _reworded(material: Material, sentence: Sentence) -> Sentence:
    """The same in its second frame. Raises `EmsError` if that says what another sentence says."""
    name = sentence.template.name if sentence.template else ""
    other = compose(material.reworded[name], sentence.fillers)
    if not material.drawer.admit(other):
        raise EmsError(f"template {name}: another sentence is {other.texts['en']!r} already")
    return other
