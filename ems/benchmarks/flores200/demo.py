"""The demo's FLORES-200: the first sentences of its Tatoeba, so that one leak is found in both."""

from ems.corpora.demo.mirror import Files, lines
from ems.corpora.demo.texts import Material

PLACE = 1
CODES = {
    "en": "eng_Latn",
    "de": "deu_Latn",
    "fr": "fra_Latn",
    "es": "spa_Latn",
    "ru": "rus_Cyrl",
    "zh": "zho_Hans",
    "ja": "jpn_Jpan",
    "ar": "arb_Arab",
}
SENTENCES = 200


def made(material: Material) -> Files:
    """Return `devtest/<code>.devtest` of each language."""
    sentences = material.benchmark[:SENTENCES]
    return {
        f"devtest/{code}.devtest": lines([sentence.texts[language] for sentence in sentences])
        for language, code in CODES.items()
    }
