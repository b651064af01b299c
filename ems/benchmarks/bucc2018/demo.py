"""The demo's BUCC 2018: comparable corpora of de fr ru zh with English, and which pairs are hidden.

Notable choices:
- of one part each language has the same sentences, but others of them are the translated ones, and
  others are in English only: its own halves of a shuffled pool;
- three or four sentences of ten have a translation, where BUCC has two or three of a hundred:
  with as few here, one pair would be some percent of F1.
"""

from ems.corpora.demo.draw import Sentence
from ems.corpora.demo.layout import lines
from ems.corpora.demo.material import Files, Material

LANGUAGES = ("de", "fr", "ru", "zh")
PARTS = {  # pairs, and sentences of either side without a translation
    "sample": (40, 60),
    "training": (100, 200),
}


def made(material: Material) -> Files:
    """Return sentences, English sentences and gold of each language and part."""
    files: Files = {}
    for part, (pairs, alone) in PARTS.items():
        pool = material.any(pairs + 2 * alone)
        for language in LANGUAGES:
            own = material.shuffled(pool)
            both, english = own[:pairs], own[pairs:][:alone]
            files |= _part(material, language, part, both, own[pairs + alone :], english)
    return files


def _part(
    material: Material,
    language: str,
    part: str,
    both: list[Sentence],
    other_alone: list[Sentence],
    english_alone: list[Sentence],
) -> Files:
    stem = f"{language}-en/{language}-en.{part}"
    first = _numbered(language, material.shuffled([*both, *other_alone]))
    second = _numbered("en", material.shuffled([*both, *english_alone]))
    gold = sorted(f"{first[id(pair)]}\t{second[id(pair)]}" for pair in both)
    by_id = {id(sentence): sentence for sentence in [*both, *other_alone, *english_alone]}

    def text(language: str, names: dict[int, str]) -> str:
        return lines([f"{name}\t{by_id[key].texts[language]}" for key, name in names.items()])

    return {
        f"{stem}.{language}": text(language, first),
        f"{stem}.en": text("en", second),
        f"{stem}.gold": lines(gold),
    }


def _numbered(language: str, sentences: list[Sentence]) -> dict[int, str]:
    """The id of each sentence, by its identity: `de-000000001`."""
    return {id(sentence): f"{language}-{at:09}" for at, sentence in enumerate(sentences, start=1)}
