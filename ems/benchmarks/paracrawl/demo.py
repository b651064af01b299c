"""The demo's ParaCrawl: new sentences, the same in every language."""

from ems.corpora.demo.mirror import Files, demo_codes, moses_zips
from ems.corpora.demo.texts import Material

PLACE = 6
PAIRS = 400  # per language


def demo_files(material: Material) -> Files:
    return moses_zips("ParaCrawl", material.draw(PAIRS), demo_codes("paracrawl"))
