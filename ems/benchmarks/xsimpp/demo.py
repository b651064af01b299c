"""The demo's xsim++: FLORES sentences with one phrase replaced; its slot decides the kind.

LASER's third kind, causality_alternation, negates or inverts a meaning; here it replaces a state,
quality, ailment or weather. Free sentences of FLORES cannot be altered.
"""

import json

from ems.benchmarks.flores200.demo import SENTENCES
from ems.corpora.demo.mirror import Files, lines
from ems.corpora.demo.texts import Material, read_labels

PLACE = 2
NEGATIVES = 3  # per English sentence of FLORES
ENTITY = "entity_replacement"  # kind of slots that demo.yaml does not list


def demo_files(material: Material) -> Files:
    kinds = {slot: kind for kind, slots in read_labels(__file__).items() for slot in slots}
    altered: dict[str, dict[str, str]] = {}
    for source in material.benchmark[:SENTENCES]:
        for _ in range(NEGATIVES if source.template else 0):
            other = material.drawer.neighbour(source)
            slots = zip(source.template.slots, source.fillers, other.fillers, strict=True)
            (changed,) = [slot.name for slot, before, after in slots if before != after]
            kind = kinds.get(changed, ENTITY)
            altered[other.texts["en"]] = {"errtype": kind, "src": source.texts["en"]}
    return {
        "eng_Latn_augmented.devtest": lines(list(altered)),
        "eng_Latn_errtype.devtest.json": json.dumps(altered, indent=1) + "\n",
    }
