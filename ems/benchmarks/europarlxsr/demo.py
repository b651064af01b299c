"""The demo's Europarl: new sentences, the same in each language."""

from ems.corpora.demo.layout import moses_zips
from ems.corpora.demo.material import Files, Material

PLACE = 7
PAIRS = 400  # of a language
LANGUAGES = ("de", "fr", "es")  # of the set's, those that the demo has


def made(material: Material) -> Files:
    """Return the zip of each language with English."""
    return moses_zips("Europarl", LANGUAGES, material.any(PAIRS))
