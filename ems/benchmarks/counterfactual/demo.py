"""The demo's Amazon counterfactual sentences: what was not the case, or was; en de ja.

Notable choices:
- the class is that of the sentence's frame (`labels.yaml`, demo.yaml beside this file): each of
  either class has one of the other beside it, with words of the same categories, so that what tells
  the class is how something is said and not of what;
- equally many sentences of either class, where of the real test one in five is counterfactual in
  English, seven in ten in German, one in ten in Japanese;
- the sentences are the same in every language, where the real set's are each language's own.
"""

from pathlib import Path

from ems.corpora.demo.draw import draw_evenly
from ems.corpora.demo.grammar import read_frames, read_lexicon
from ems.corpora.demo.material import Files, Material, table

FRAMES = Path(__file__).with_name("demo.yaml")
CODES = {"en": "EN", "de": "DE", "ja": "JP"}
PER_CLASS = {"train": 60, "valid": 20, "test": 50}
HEADER = ("sentence", "is_counterfactual")


def made(material: Material) -> Files:
    """Return `<XX>_{train,valid,test}.tsv` of each language."""
    frames = read_frames(FRAMES, True, read_lexicon(), tuple(CODES))
    templates = {template.name: template for template in frames}
    classes = {
        label: [templates[name] for name in names]
        for label, names in material.labels["counterfactual"].items()
    }
    files: Files = {}
    for split, count in PER_CLASS.items():
        found = [
            (label, sentence)
            for label, kinds in classes.items()
            for sentence in draw_evenly(material.drawer, kinds, count)
        ]
        mixed = material.shuffled(found)
        for language, code in CODES.items():
            rows = [(sentence.texts[language], label) for label, sentence in mixed]
            files[f"{code}_{split}.tsv"] = table([HEADER, *rows])
    return files
