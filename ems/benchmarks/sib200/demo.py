"""The demo's SIB-200: sentences with a topic, the same in every language.

Notable choices:
- the topic is that of the sentence's frame (demo.yaml), several frames each, equally many
  sentences of each topic; a topic's name is the publisher's and only roughly what the frames are
  of;
- the sentences are new, where SIB-200's are those of FLORES-200: training and choosing must not
  take away what FLORES is scored on.
"""

from ems.benchmarks.flores200.demo import CODES
from ems.corpora.demo.material import Files, Material, labels_beside, table

PER_TOPIC = {"train": 30, "dev": 10, "test": 20}
HEADER = ("index_id", "category", "text")


def made(material: Material) -> Files:
    """Return `<code>/{train,dev,test}.tsv` of each language."""
    files: Files = {}
    topics: dict[str, list[str]] = labels_beside(__file__)
    for split, count in PER_TOPIC.items():
        found = [(topic, s) for topic, names in topics.items() for s in material.of(names, count)]
        mixed = material.shuffled(found)
        for language, code in CODES.items():
            rows = [(str(at), topic, s.texts[language]) for at, (topic, s) in enumerate(mixed)]
            files[f"{code}/{split}.tsv"] = table([HEADER, *rows])
    return files
