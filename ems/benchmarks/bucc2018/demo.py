"""The demo's BUCC 2018: comparable corpora of de fr ru zh with English, and the hidden pairs.

All languages share the sentences of a part, but each shuffles them and has other translated ones. A
third has a translation, not 2 to 3 % as in BUCC, or one pair would be worth several percent of F1.
"""

from ems.corpora.demo.grammar import DemoSentence
from ems.corpora.demo.mirror import Files, demo_codes, lines, table
from ems.corpora.demo.texts import Material

PLACE = 5
PARTS = {"sample": (40, 60), "training": (100, 200)}  # pairs, untranslated sentences per side


def demo_files(material: Material) -> Files:
    files: Files = {}
    for part, (pairs, alone) in PARTS.items():
        pool = material.draw(pairs + 2 * alone)
        for language in demo_codes("bucc2018"):
            own = material.shuffled(pool)
            both, english, other = own[:pairs], own[pairs:][:alone], own[pairs + alone :]
            first = _numbered(language, material.shuffled([*both, *other]))
            second = _numbered("en", material.shuffled([*both, *english]))
            gold = sorted(f"{first[id(pair)][0]}\t{second[id(pair)][0]}" for pair in both)
            stem = f"{language}-en/{language}-en.{part}"
            files[f"{stem}.{language}"] = table(first.values())
            files[f"{stem}.en"] = table(second.values())
            files[f"{stem}.gold"] = lines(gold)
    return files


def _numbered(language: str, sentences: list[DemoSentence]) -> dict[int, tuple[str, str]]:
    """Map the identity of each sentence to (id, text): ("de-000000001", "...")."""
    numbered = enumerate(sentences, start=1)
    return {id(each): (f"{language}-{at:09}", each.texts[language]) for at, each in numbered}
