"""The demo's sets of translations: FLORES-200, xsim++, NTREX, ParaCrawl and Europarl.

Notable choices:
- FLORES-200's sentences are the first of the demo's Tatoeba: one leak is found in both;
- a made sentence of xsim++ is its neighbour with one phrase exchanged; which phrase says the kind.
  LASER's third kind, causality_alternation, negates or turns a meaning around; here it stands for
  another state, quality, ailment or weather. Free sentences of FLORES have no neighbours;
- NTREX is divided into documents of equal size, which share nothing but their name;
- ParaCrawl and Europarl have the same sentences in each language, all of them new.
"""

import json
from collections.abc import Sequence

from ems.corpora.demo.build import OTHERS
from ems.corpora.demo.draw import Sentence
from ems.corpora.demo.layout import lines, moses, moses_name
from ems.corpora.demo.material import Files, Material, changed_slot

FLORES_CODES = {
    "en": "eng_Latn",
    "de": "deu_Latn",
    "fr": "fra_Latn",
    "es": "spa_Latn",
    "ru": "rus_Cyrl",
    "zh": "zho_Hans",
    "ja": "jpn_Jpan",
    "ar": "arb_Arab",
}
FLORES = 200  # sentences
NEGATIVES = 3  # made of each English sentence of FLORES
NTREX, DOCUMENT = 120, 10  # sentences, of which so many are a document
PARACRAWL, EUROPARL = 400, 400  # pairs of a language
PARACRAWL_LANGUAGES = EUROPARL_LANGUAGES = ("de", "fr", "es")  # of the demo's, those that it has
ENTITY = "entity_replacement"  # what is exchanged unless labels.yaml says otherwise
NOTE = "For evaluation; no sentence of it is in Demo or in another set."


def flores200(material: Material) -> Files:
    """Return `devtest/<code>.devtest` of each language."""
    sentences = material.demo.benchmark[:FLORES]
    return {
        f"devtest/{code}.devtest": lines([sentence.texts[language] for sentence in sentences])
        for language, code in FLORES_CODES.items()
    }


def xsimpp(material: Material) -> Files:
    """Return the made sentences of FLORES-200's English ones, and what was changed in each."""
    kinds = {slot: kind for kind, slots in material.labels["xsimpp"].items() for slot in slots}
    made: dict[str, dict[str, str]] = {}
    for source in material.demo.benchmark[:FLORES]:
        for _ in range(NEGATIVES if source.template else 0):
            other = material.drawer.neighbour(source)
            kind = kinds.get(changed_slot(source, other), ENTITY)
            made[other.texts["en"]] = {"errtype": kind, "src": source.texts["en"]}
    return {
        "eng_Latn_augmented.devtest": lines(list(made)),
        "eng_Latn_errtype.devtest.json": json.dumps(made, indent=1) + "\n",
    }


def ntrex(material: Material) -> Files:
    """Return the zip of each language with English, and the document of each line."""
    documents = [f"demo-news.{1 + number // DOCUMENT}" for number in range(NTREX)]
    zips = _zips("NTREX", OTHERS, material.any(NTREX))
    return {**zips, "DOCUMENT_IDS.tsv": lines(documents)}


def paracrawl(material: Material) -> Files:
    """Return the zip of each language with English."""
    return _zips("ParaCrawl", PARACRAWL_LANGUAGES, material.any(PARACRAWL))


def europarl(material: Material) -> Files:
    """Return the zip of each language with English."""
    return _zips("Europarl", EUROPARL_LANGUAGES, material.any(EUROPARL))


def _zips(corpus: str, languages: Sequence[str], sentences: Sequence[Sentence]) -> Files:
    return {
        f"moses/{moses_name(language)}": moses(
            corpus, language, [sentence.pair(language) for sentence in sentences], NOTE
        )
        for language in languages
    }
