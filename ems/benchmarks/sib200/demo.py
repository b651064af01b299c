"""The demo's SIB-200: sentences whose frame determines the topic (demo.yaml).

They are new sentences, not FLORES-200's as in SIB-200, so that the training and validation parts do
not contain sentences that FLORES scores.
"""

from ems.corpora.demo.mirror import Files, demo_codes, table
from ems.corpora.demo.texts import Material, read_labels

PLACE = 4
PER_TOPIC = {"train": 30, "dev": 10, "test": 20}
HEADER = ("index_id", "category", "text")


def demo_files(material: Material) -> Files:
    files: Files = {}
    topics = read_labels(__file__).items()
    for split, count in PER_TOPIC.items():
        labelled = [(topic, s) for topic, names in topics for s in material.draw_from(names, count)]
        mixed = material.shuffled(labelled)
        for language, code in demo_codes("sib200").items():
            rows = [(str(at), topic, s.texts[language]) for at, (topic, s) in enumerate(mixed)]
            files[f"{code}/{split}.tsv"] = table([HEADER, *rows])
    return files
