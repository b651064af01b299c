"""The demo's Europarl: new sentences, the same in every language."""

from ems.benchmarks.paracrawl.demo import PAIRS
from ems.corpora.demo.mirror import Files, demo_codes, moses_zips
from ems.corpora.demo.texts import Material

PLACE = 7


def demo_files(material: Material) -> Files:
    return moses_zips("Europarl", material.draw(PAIRS), demo_codes("europarlxsr"))
