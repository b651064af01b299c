"""The demo's ParaCrawl: new sentences, the same in each language."""

from ems.corpora.demo.layout import moses_zips
from ems.corpora.demo.material import Files, Material

PAIRS = 400  # of a language
LANGUAGES = ("de", "fr", "es")  # of the demo's, those that it has


def made(material: Material) -> Files:
    """Return the zip of each language with English."""
    return moses_zips("ParaCrawl", LANGUAGES, material.any(PAIRS))
