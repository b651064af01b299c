"""The demo's NTREX: documents of ten unrelated sentences."""

from ems.corpora.demo.grammar import OTHERS
from ems.corpora.demo.mirror import Files, lines, moses_zips
from ems.corpora.demo.texts import Material

PLACE = 3
SENTENCES, DOCUMENT = 120, 10  # in total, per document


def demo_files(material: Material) -> Files:
    documents = [f"demo-news.{1 + number // DOCUMENT}" for number in range(SENTENCES)]
    zips = moses_zips("NTREX", material.draw(SENTENCES), OTHERS)
    return {**zips, "DOCUMENT_IDS.tsv": lines(documents)}
