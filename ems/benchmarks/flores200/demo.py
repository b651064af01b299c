"""The demo's FLORES-200: the first sentences of its Tatoeba, so that a leak shows in both."""

from ems.corpora.demo.mirror import Files, demo_codes, lines
from ems.corpora.demo.texts import Material

PLACE = 1
SENTENCES = 200


def demo_files(material: Material) -> Files:
    sentences = material.benchmark[:SENTENCES]
    return {
        f"devtest/{code}.devtest": lines(sentence.texts[language] for sentence in sentences)
        for language, code in demo_codes("flores200").items()
    }
