"""The demo's Amazon counterfactual sentences in en de ja.

In demo.yaml each frame has a counterpart in the other class that takes the same categories of
words, so that only the construction distinguishes the classes.
"""

from pathlib import Path

from ems.corpora.demo.grammar import read_frames
from ems.corpora.demo.mirror import Files, demo_codes, table
from ems.corpora.demo.texts import Material

PLACE = 14
PER_CLASS = {"train": 60, "valid": 20, "test": 50}
CLASSES = {  # is_counterfactual -> frames
    "1": "had_had_money wishes_bought better_to_chore would_with_time would_be_happier",
    "0": "had_money glad_bought had_to_chore has_time is_happy",
}
HEADER = ("sentence", "is_counterfactual")


def demo_files(material: Material) -> Files:
    frames = read_frames(Path(__file__).with_name("demo.yaml"))
    classes = {label: [frames[name] for name in names.split()] for label, names in CLASSES.items()}
    files: Files = {}
    for split, count in PER_CLASS.items():
        drawn = ((label, material.drawer.draw_evenly(own, count)) for label, own in classes.items())
        mixed = material.shuffled([(sentence, label) for label, own in drawn for sentence in own])
        for language, code in demo_codes("counterfactual").items():
            rows = [(sentence.texts[language], label) for sentence, label in mixed]
            files[f"{code}_{split}.tsv"] = table([HEADER, *rows])
    return files
