"""The demo's xsim++: FLORES sentences with one phrase exchanged, which tells the kind of change.

LASER's third kind, causality_alternation, negates or turns a meaning around; here it stands for
another state, quality, ailment or weather. Free sentences of FLORES have no neighbours.
"""

import json

from ems.benchmarks.flores200.demo import SENTENCES
from ems.corpora.demo.mirror import Files, lines
from ems.corpora.demo.texts import Material, read_labels

PLACE = 2
NEGATIVES = 3  # made of each English sentence of FLORES
ENTITY = "entity_replacement"  # of a slot that demo.yaml does not list


def demo_files(material: Material) -> Files:
    """Return the made sentences of FLORES-200's English ones, and what was changed in each."""
    kinds = {slot: kind for kind, slots in read_labels(__file__).items() for slot in slots}
    made: dict[str, dict[str, str]] = {}
    for source in material.benchmark[:SENTENCES]:
        for _ in range(NEGATIVES if source.template else 0):
            other = material.drawer.neighbour(source)
            slots = zip(source.template.slots, source.fillers, other.fillers, strict=True)
            (changed,) = [slot.name for slot, before, after in slots if before != after]
            kind = kinds.get(changed, ENTITY)
            made[other.texts["en"]] = {"errtype": kind, "src": source.texts["en"]}
    return {
        "eng_Latn_augmented.devtest": lines(list(made)),
        "eng_Latn_errtype.devtest.json": json.dumps(made, indent=1) + "\n",
    }
