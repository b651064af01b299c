"""The demo's Europarl: new sentences, the same in each language."""

from ems.corpora.demo.mirror import Files, in_pairs, moses_zips
from ems.corpora.demo.texts import Material

PLACE = 7
PAIRS = 400  # of a language
LANGUAGES = ("de", "fr", "es")  # of the set's, those that the demo has


def made(material: Material) -> Files:
    """Return the zip of each language with English."""
    return moses_zips("Europarl", in_pairs(material.any(PAIRS), LANGUAGES))
